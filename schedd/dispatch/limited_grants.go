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

// LimitedGrants lists the grants with licences. A leader needs the list to know which
// grants a schedd may still act on. all is false while other claims may have licences.
// For a claim from before this schedd started, only the claim's node knows from which
// grant it was made. Nothing records whether that grant had licences, and so it is
// listed.
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
