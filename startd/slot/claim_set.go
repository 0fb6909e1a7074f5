package slot

import (
	"maps"
	"slices"
)

// claimSet are the claims of a machine by their ids.
type claimSet map[ClaimID]*Claim

// sorted returns the claims by their ids.
func (s claimSet) sorted() []*Claim {
	all := make([]*Claim, 0, len(s))
	for _, id := range slices.Sorted(maps.Keys(s)) {
		all = append(all, s[id])
	}
	return all
}

// ofSchedd returns the claims of a schedd by their ids.
func (s claimSet) ofSchedd(schedd string) []*Claim {
	var all []*Claim
	for _, id := range slices.Sorted(maps.Keys(s)) {
		if claim := s[id]; claim.Schedd == schedd {
			all = append(all, claim)
		}
	}
	return all
}

// exclusive returns the claim that has the machine alone; nil for none.
func (s claimSet) exclusive() *Claim {
	for _, claim := range s {
		if claim.Info.Alone {
			return claim
		}
	}
	return nil
}

// running returns how many claims have an attempt that has not ended.
func (s claimSet) running() (n int) {
	for _, claim := range s {
		if claim.hasLiveAttempt() {
			n++
		}
	}
	return n
}

// placed returns how many claims have a part of the machine.
func (s claimSet) placed() (n int) {
	for _, claim := range s {
		if claim.hasPlacement && claim.Inside == 0 {
			n++
		}
	}
	return n
}
