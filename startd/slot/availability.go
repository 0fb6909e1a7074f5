package slot

import (
	"maps"
	"slices"
)

// What the owner of the machine has of the books. When somebody sits at it is decided
// elsewhere (package startd/desktop/policy).

// SetAvailable sets the reason why no claims are given for now. With an empty reason they
// are given again. Existing claims stay.
func (c *ClaimTable) SetAvailable(refused string) {
	if c.unavailableReason != refused {
		c.unavailableReason = refused
		c.version++
	}
}

// TakesClaims reports whether claims are given now, if there is room.
func (c *ClaimTable) TakesClaims() bool { return c.unavailableReason == "" && c.drainReason == "" }

// ReleaseIdle ends all claims on which nothing runs yet: whoever waits here would wait
// for nobody knows how long. An attempt that is being started goes, too: it has done
// nothing yet. A claim whose attempt has ended goes when that has been acknowledged, or
// its schedd would put the next one there.
func (c *ClaimTable) ReleaseIdle(reason string) {
	for _, id := range slices.Sorted(maps.Keys(c.claims)) {
		switch claim := c.claims[id]; {
		case claim == nil || claim.endReason != "" || claim.hasLiveAttempt() && claim.Running:
		case claim.State == Exited || claim.ProcessesGone:
			c.dropEnded(claim, reason)
		default:
			c.endWhenIdle(claim, Vacated, true, reason)
		}
	}
}

// dropEnded has a claim go whose attempt has ended, when that has been acknowledged.
func (c *ClaimTable) dropEnded(claim *Claim, reason string) {
	claim.endReason = reason
	c.nodeQueues().leaveQueue(claim)
}

// EndClaim ends a claim, and what runs on it: with a checkpoint and its notice, or at
// once. It reports whether the claim was there.
func (c *ClaimTable) EndClaim(id ClaimID, fast bool, reason string) bool {
	claim := c.claims[id]
	if claim == nil {
		return false
	}
	if claim.State == Exited {
		c.dropEnded(claim, reason)
		return true
	}
	c.endWhenIdle(claim, Vacated, fast, reason)
	return true
}
