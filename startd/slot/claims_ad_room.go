package slot

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
)

// The machine's ad lists its claims, and collectors refuse an ad that is too long: a
// machine that gives more claims than its ad can name would not be seen any more, with
// all that it has. So a claim is made only if the ad has room for it, whatever its task
// will be called and however long it runs; and as long as there is none the ad says that
// the machine takes nobody.

// Bounds of what claims are in the ad, in bytes of text.
const (
	// for one: what a schedd says of it in words is not the machine's to bound
	maxClaimText      = 8 << 10
	maxClaimsText     = roost.MaxDaemonAdBytes / 8 * 7 // for all; the rest is for the machine itself
	minClaimText      = 512                            // for which there has to be room, or the machine takes nobody
	placementPartText = 40                             // of one unit or device in a placement
	longestTimeText   = 1 << 40                        // unix seconds; nothing is longer that anybody reads
	maxNumber         = 1<<64 - 1
)

// maxAdBytes is how long the ad of the claim can become.
func (c *Claim) maxAdBytes() int {
	full := *c
	task := roost.JobID{Seq: maxNumber, Host: c.Schedd}.Task(1 << 31)
	full.State, full.Running, full.hasPlacement, full.endReason, full.preemptor = Busy, true, true, "ending", c
	full.Attempt = roost.AttemptID{Task: task, Attempt: 1<<31 - 1}
	full.AttemptInfo = AttemptInfo{Walltime: 1, Expected: 1, Priority: roost.MinPriority, NotRestartable: true}
	full.Placement.Parts, full.Placement.Shares = nil, nil
	saved := func(*Claim) CheckpointInfo {
		return CheckpointInfo{Possible: true, Last: time.Unix(longestTimeText, 0)}
	}
	ad := full.describe(ClockReading{Wall: time.Unix(longestTimeText, 0)}, saved)
	return len(ad.String()) + placementPartText*(1+c.Resources.GPUs)
}

// checkAdRoom returns an error if the machine's ad has no room for the request. Otherwise
// it records in the request how much room that takes.
func (c admission) checkAdRoom(r *ClaimRequest) error {
	wanted := Claim{ID: c.ids.next, Schedd: r.Schedd, Owner: r.Owner, Info: r.Info, Class: r.Class,
		Resources: r.Resources}
	size := wanted.maxAdBytes()
	if size > maxClaimText {
		return fmt.Errorf("%w: its owner, group, queue and licences would take %d bytes of the machine's ad, and %d "+
			"is the most", roost.Invalid, size, maxClaimText)
	}
	if c.claimsAdBytes+size > maxClaimsText {
		return fmt.Errorf("%w: the machine's ad has no room for more than its %d claims", roost.Exhausted,
			len(c.claims))
	}
	r.adBytes = size
	return nil
}

// addClaim adds a claim to the books, and remove takes it out.
func (c *ClaimTable) addClaim(claim *Claim) {
	c.claimsAdBytes += claim.adBytes
	c.claims[claim.ID] = claim
}

func (c *ClaimTable) removeClaim(claim *Claim) {
	c.claimsAdBytes -= claim.adBytes
	delete(c.claims, claim.ID)
}

// isAdFull reports whether the machine's ad has no room for another claim.
func (c adWriter) isAdFull() bool { return c.claimsAdBytes+minClaimText > maxClaimsText }
