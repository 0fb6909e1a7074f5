package pack

import (
	"cmp"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/match"
)

// need is one kind of typical task.
type need struct {
	gpu.Need
	class *match.Class // one of the kind
	text  string       // of its Requirements
}

// agrees reports whether tasks of the kind may have a machine at all.
func (n *need) agrees(m *match.Machine) bool {
	e, ok := n.class.Ad.Lookup(roost.AttrRequirements)
	return !ok || classad.Eval(e, n.class.Ad, m.Ad, nil).IsTrue()
}

// typical are the most frequent kinds of tasks that make up 95 of 100, those without GPUs among them, by the number of their tasks. Fragmentation is measured
// by them (Weng et al., §4.1), for every scheduler alike; as there, memory is left out of it. The weights add up to [gpu.MixWeight].
func typical(requests []*match.Request) []need {
	var kinds []need
	all := 0
	for _, r := range requests {
		n := need{Need: gpu.Need{Request: gpu.Request{Resources: r.Class.Resources}}, class: r.Class}
		n.Memory, n.Disk = 0, 0
		if e, ok := r.Class.Ad.Lookup(roost.AttrRequirements); ok {
			n.text = e.String()
		}
		at := slices.IndexFunc(kinds, func(k need) bool { return k.Request == n.Request && k.text == n.text })
		if at < 0 {
			at, kinds = len(kinds), append(kinds, n)
		}
		kinds[at].Weight += r.Wanted
		all += r.Wanted
	}
	slices.SortStableFunc(kinds, func(a, b need) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.GPUs, b.GPUs), cmp.Compare(a.GPUMemory, b.GPUMemory), cmp.Compare(a.CPU, b.CPU), strings.Compare(a.text, b.text))
	})
	some, n := 0, 0
	for ; n < len(kinds) && n < gpu.MaxNeeds && 100*some < 95*all; n++ {
		some += kinds[n].Weight
	}
	kinds = kinds[:n]
	// Whole numbers that add up: each gets what it would have of what is left for it and those behind it.
	left := gpu.MixWeight
	for i := range kinds {
		weight := kinds[i].Weight
		kinds[i].Weight = (2*left*weight + some) / (2 * some)
		left, some = left-kinds[i].Weight, some-weight
	}
	return kinds
}
