package packing

import (
	"cmp"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/match"
)

// taskShape is one kind of typical task.
type taskShape struct {
	gpu.MixRequest
	class        *match.RequestClass // one of the kind
	requirements string              // of its Requirements
}

// mayUse reports whether tasks of the kind may have a machine at all.
func (n *taskShape) mayUse(m *match.Machine) bool {
	e, ok := n.class.Ad.Lookup(roost.AttrRequirements)
	return !ok || classad.Eval(e, n.class.Ad, m.Ad, nil).IsTrue()
}

// typicalTasks are the most frequent kinds of tasks that make up 95 of 100, those without
// GPUs among them, by the number of their tasks. Fragmentation is measured by them (Weng
// et al., §4.1), for every scheduler alike; as there, memory is left out of it. The
// weights add up to [gpu.MixWeight].
func typicalTasks(requests []*match.Request) []taskShape {
	var kinds []taskShape
	all := 0
	for _, r := range requests {
		n := taskShape{MixRequest: gpu.MixRequest{DeviceRequest: gpu.DeviceRequest{Resources: r.Class.Resources}},
			class: r.Class}
		n.Memory, n.Disk = 0, 0
		if e, ok := r.Class.Ad.Lookup(roost.AttrRequirements); ok {
			n.requirements = e.String()
		}
		at := slices.IndexFunc(kinds, func(k taskShape) bool {
			return k.DeviceRequest == n.DeviceRequest && k.requirements == n.requirements
		})
		if at < 0 {
			at, kinds = len(kinds), append(kinds, n)
		}
		kinds[at].Weight += r.Wanted
		all += r.Wanted
	}
	slices.SortStableFunc(kinds, func(a, b taskShape) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.GPUs, b.GPUs), cmp.Compare(a.GPUMemory,
			b.GPUMemory), cmp.Compare(a.CPU, b.CPU), strings.Compare(a.requirements, b.requirements))
	})
	some, n := 0, 0
	for ; n < len(kinds) && n < gpu.MaxNeeds && 100*some < 95*all; n++ {
		some += kinds[n].Weight
	}
	kinds = kinds[:n]
	// Whole numbers that add up: each gets what it would have of what is left for it and
	// those behind it.
	left := gpu.MixWeight
	for i := range kinds {
		weight := kinds[i].Weight
		kinds[i].Weight = (2*left*weight + some) / (2 * some)
		left, some = left-kinds[i].Weight, some-weight
	}
	return kinds
}
