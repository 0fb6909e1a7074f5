package slot

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// A claim may have the machine alone: then it is made only while nobody has anything of
// it, or waits for it, and takes all of it. So whoever comes later finds nothing free,
// and nothing of what it has is lent.

// admitExclusive is admit for a claim that has the machine alone. The grant names all
// that there is: one that names less was made for less.
func (c admission) admitExclusive(r *ClaimRequest) (p claimPlacement, err error) {
	total, ok := c.free.Total(), false
	switch p.placement, ok = c.free.WholeMachine(); {
	case r.Class != gpu.BatchClass:
		return p, fmt.Errorf("%w: stream tasks share their machine", roost.Invalid)
	case len(c.claims) > 0:
		return p, fmt.Errorf("%w: it is to have the machine alone, and others have claims to it", roost.Conflict)
	case !ok:
		return p, fmt.Errorf("%w: it is to have the machine alone, and some of it is taken", roost.Conflict)
	case r.Resources.CPU < total.CPU || r.Resources.Memory/roost.MiB < total.Memory/roost.MiB ||
		r.Resources.GPUs < total.GPUs:
		return p, fmt.Errorf("%w: it is to have the machine alone, which has %v, and was granted %v", roost.Conflict,
			total, r.Resources)
	}
	r.Resources = total
	return p, c.matchRequirements(c.Ad(), r)
}
