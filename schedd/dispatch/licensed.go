package dispatch

import (
	"cmp"
	"slices"
)

// Held is a grant with licences that is not answered yet, or a claim by now.
type Held struct {
	Grant      GrantID
	Claimed    bool
	AdSequence uint64 // of the first machine ad that shows the claim; 0: not known
}

// Licensed lists the grants with licences, for a leader that has to know which of them may still be acted upon. all is false while others may have some: of
// a claim from before this schedd started only its node can say what grant it was made of. Whether that had licences nobody says, and so it is listed.
func (d *Dispatcher) Licensed() (list []Held, all bool) {
	all = true
	d.Each(func(c *Claim) {
		if c.adopted && c.Grant.ID == 0 {
			all = false
		} else if c.adopted || c.Grant.ClaimBy != 0 {
			list = append(list, Held{c.Grant.GrantID, c.State != Asked, c.shown})
		}
	})
	slices.SortFunc(list, func(a, b Held) int {
		return cmp.Or(cmp.Compare(a.Grant.Epoch, b.Grant.Epoch), cmp.Compare(a.Grant.ID, b.Grant.ID))
	})
	return list, all
}
