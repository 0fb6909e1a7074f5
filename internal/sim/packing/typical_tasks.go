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

// taskShape is a kind of typical task.
type taskShape struct {
	gpu.MixRequest
	class        *match.RequestClass // class of a request of this kind
	requirements string              // text of its Requirements
}

// mayUse reports whether a machine satisfies the Requirements of this kind.
func (n *taskShape) mayUse(m *match.Machine) bool {
	e, ok := n.class.Ad.Lookup(roost.AttrRequirements)
	return !ok || classad.Eval(e, n.class.Ad, m.Ad, nil).IsTrue()
}

// typicalTasks returns the most frequent kinds of tasks that together make up 95 % of
// all. Kinds without GPUs are included. They define fragmentation (Weng et al., §4.1)
// equally for every scheduler; as there, memory does not count. The weights add up to
// [gpu.MixWeight].
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
	// Whole numbers with an exact sum: each kind gets its part of what is left for it and
	// the kinds after it.
	left := gpu.MixWeight
	for i := range kinds {
		weight := kinds[i].Weight
		kinds[i].Weight = (2*left*weight + some) / (2 * some)
		left, some = left-kinds[i].Weight, some-weight
	}
	return kinds
}
