package slot

import "slices"

// ClaimIDs gives out the ids of claims, in ascending order: the claim with the higher id
// is the younger one. An id can be reserved, so that what a claim needs is made under it
// before there is a claim.
type ClaimIDs struct {
	next    ClaimID
	last    ClaimID   // that a claim got
	offered []ClaimID // reserved ids that new claims get first, in ascending order
}

// IDs returns what gives out the ids of the table's claims.
func (c *ClaimTable) IDs() *ClaimIDs { return &c.ids }

// Reserve returns an id that no claim gets unless it is offered.
func (s *ClaimIDs) Reserve() ClaimID {
	s.next++
	return s.next - 1
}

// Offer has one of the next claims get a reserved id. It reports whether that is
// possible: not if a younger claim is there already.
func (s *ClaimIDs) Offer(id ClaimID) bool {
	if id < s.last {
		return false
	}
	at, _ := slices.BinarySearch(s.offered, id)
	s.offered = slices.Insert(s.offered, at, id)
	return true
}

// Withdraw takes an offer back. It has no effect if a claim has the id.
func (s *ClaimIDs) Withdraw(id ClaimID) {
	s.offered = slices.DeleteFunc(s.offered, func(offered ClaimID) bool { return offered == id })
}

// take returns the id of a new claim.
func (s *ClaimIDs) take() ClaimID {
	if len(s.offered) == 0 {
		s.last = s.Reserve()
	} else {
		s.last, s.offered = s.offered[0], s.offered[1:]
	}
	return s.last
}
