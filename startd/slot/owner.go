package slot

import (
	"maps"
	"slices"
)

// What the owner of the machine has of the books. When somebody sits at it is decided elsewhere (package startd/owner).

// Lend says why no claims are given for now, in the words of whoever decides that; with an empty reason they are again. What there is stays.
func (c *Core) Lend(refused string) {
	if c.refused != refused {
		c.refused = refused
		c.version++
	}
}

// HandBack ends all claims on which nothing runs yet: whoever waits here would wait for nobody knows how long. An attempt that is being started goes,
// too: it has done nothing yet. A claim whose attempt has ended goes when that has been acknowledged, or its schedd would put the next one there.
func (c *Core) HandBack(reason string) {
	for _, id := range slices.Sorted(maps.Keys(c.claims)) {
		switch claim := c.claims[id]; {
		case claim == nil || claim.ending != "" || claim.live() && claim.Running:
		case claim.State == Exited || claim.Over:
			c.bury(claim, reason)
		default:
			c.finish(claim, Vacated, true, reason)
		}
	}
}

// bury has a claim go whose attempt has ended, when that has been acknowledged.
func (c *Core) bury(claim *Claim, reason string) {
	claim.ending = reason
	c.leave(claim)
}

// Expel ends a claim, and what runs on it: with a checkpoint and its notice, or at once. It reports whether the claim was there.
func (c *Core) Expel(id ClaimID, fast bool, reason string) bool {
	claim := c.claims[id]
	if claim == nil {
		return false
	}
	if claim.State == Exited {
		c.bury(claim, reason)
		return true
	}
	c.finish(claim, Vacated, fast, reason)
	return true
}

// All lists the claims by their ids.
func (c *Core) All() []*Claim { return c.sorted() }
