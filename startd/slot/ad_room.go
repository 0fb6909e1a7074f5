package slot

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
)

// The machine's ad lists its claims, and collectors refuse an ad that is too long: a machine that gives more claims than its ad can name would not be seen any
// more, with all that it has. So a claim is made only if the ad has room for it, whatever its task will be called and however long it runs; and as long as there
// is none the ad says that the machine takes nobody.

// Bounds of what claims are in the ad, in bytes of text.
const (
	claimRoom  = 8 << 10                        // for one: what a schedd says of it in words is not the machine's to bound
	claimsRoom = roost.MaxDaemonAdBytes / 8 * 7 // for all; the rest is for the machine itself
	usualClaim = 512                            // for which there has to be room, or the machine takes nobody
	partText   = 40                             // of one unit or device in a placement
	latestTime = 1 << 40                        // unix seconds; nothing is longer that anybody reads
	largest    = 1<<64 - 1
)

// adBytes is how long the ad of a claim can become.
func (c *Core) adBytes(claim *Claim) int {
	full := *claim
	task := roost.JobID{Seq: largest, Host: claim.Schedd}.Task(1 << 31)
	full.State, full.Running, full.holds, full.ending, full.heir = Busy, true, true, "ending", claim
	full.Attempt = roost.AttemptID{Task: task, Attempt: 1<<31 - 1}
	full.Terms = Terms{Walltime: 1, Expected: 1, Once: true}
	full.Placement.Parts, full.Placement.Shares = nil, nil
	saved := func(*Claim) Saved { return Saved{Can: true, Last: time.Unix(latestTime, 0)} }
	ad := c.describeClaim(&full, Clock{Wall: time.Unix(latestTime, 0)}, saved)
	return len(ad.String()) + partText*(1+claim.Resources.GPUs)
}

// describable says why the machine's ad has no room for what is asked for; nil if it has, and then the request knows how much that is.
func (c *Core) describable(r *ClaimRequest) error {
	wanted := Claim{ID: c.nextID, Schedd: r.Schedd, Owner: r.Owner, About: r.About, Class: r.Class, Resources: r.Resources}
	size := c.adBytes(&wanted)
	if size > claimRoom {
		return fmt.Errorf("%w: its owner, group, queue and licences would take %d bytes of the machine's ad, and %d is the most", roost.Invalid, size, claimRoom)
	}
	if c.described+size > claimsRoom {
		return fmt.Errorf("%w: the machine's ad has no room for more than its %d claims", roost.Exhausted, len(c.claims))
	}
	r.text = size
	return nil
}

// enter adds a claim to the books, and remove takes it out.
func (c *Core) enter(claim *Claim) {
	c.described += claim.text
	c.claims[claim.ID] = claim
}

func (c *Core) remove(claim *Claim) {
	c.described -= claim.text
	delete(c.claims, claim.ID)
}

// full reports whether the machine's ad has no room for another claim.
func (c *Core) full() bool { return c.described+usualClaim > claimsRoom }
