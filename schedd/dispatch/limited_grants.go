package dispatch

import (
	"cmp"
	"slices"

	"github.com/roost-batch/roost"
)

// LimitedGrant is a grant with licences that is not answered yet, or a claim by now.
type LimitedGrant struct {
	Grant      roost.GrantID
	Claimed    bool
	AdSequence uint64 // of the first machine ad that shows the claim; 0: not known
}

// LimitedGrants lists the grants with licences, for a leader that has to know which of
// them may still be acted upon. all is false while others may have some: of a claim from
// before this schedd started only its node can say what grant it was made of. Whether
// that had licences nobody says, and so it is listed.
func (d *Dispatcher) LimitedGrants() (list []LimitedGrant, all bool) {
	all = true
	d.EachClaim(func(c *Claim) {
		if c.adopted && c.Grant.ID == 0 {
			all = false
		} else if c.adopted || c.Grant.ClaimBy != 0 {
			list = append(list, LimitedGrant{c.Grant.GrantID, c.State != Requested, c.firstAdSequence})
		}
	})
	slices.SortFunc(list, func(a, b LimitedGrant) int {
		return cmp.Or(cmp.Compare(a.Grant.Epoch, b.Grant.Epoch), cmp.Compare(a.Grant.ID, b.Grant.ID))
	})
	return list, all
}
