package negotiator

import (
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/share"
)

// holdings is what submitters hold, by schedd.
type holdings map[string]map[share.Submitter]roost.Resources

// add notes what a machine's claims hold, or with sign -1 that they do no more. A claim on which nothing runs says no job, and so not whose it is: its schedd
// has made it a moment ago, and tells of it by itself; taken for one of a schedd that is away it would be charged twice.
func (h holdings) add(m *machine, sign int) {
	for i := range m.Claims {
		claim := &m.Claims[i]
		_, schedd, named := strings.Cut(claim.Job, ".") // "12[3].host"
		if !named {
			continue
		}
		all := h[schedd]
		if all == nil {
			all = map[share.Submitter]roost.Resources{}
			h[schedd] = all
		}
		sum := all[claim.Submitter]
		if sign > 0 {
			sum = sum.Add(claim.Resources)
		} else {
			sum = sum.Sub(claim.Resources)
		}
		if all[claim.Submitter] = sum; sum == (roost.Resources{}) {
			if delete(all, claim.Submitter); len(all) == 0 {
				delete(h, schedd)
			}
		}
	}
}
