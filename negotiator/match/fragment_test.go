package match

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/share"
)

// naiveMix is the mix of a snapshot, for all its machines.
type naiveMix struct {
	*gpu.Mix
	needs   []counted
	largest roost.Resources
	total   roost.Resources // of the pool
	by      Score
}

func newNaiveMix(s *Snapshot) *naiveMix {
	n := &naiveMix{by: s.Score}
	gpus, claims := 0, map[kind]int{}
	for _, m := range s.Machines {
		n.largest, n.total = atLeast(n.largest, m.Total), n.total.Add(m.Total)
		gpus += m.Total.GPUs
		for _, c := range m.Claims {
			if m.Total.GPUs > 0 {
				claims[c.kind()]++
			}
		}
	}
	n.needs = chooseNeeds(countKinds(s.Requests, claims, gpus, s.Score), s.Score)
	n.Mix = mixOf(n.needs)
	return n
}

// set is the needs whose class and the machine agree.
func (n *naiveMix) set(m *Machine) (set uint64) {
	for i, c := range n.needs {
		if c.class == nil || agree(c.class, m) {
			set |= 1 << i
		}
	}
	return set
}

// agree reports whether the Requirements of both sides hold.
func agree(c *Class, m *Machine) bool {
	return classad.Eval(attribute(c.Ad, "Requirements"), c.Ad, m.Ad, nil).IsTrue() &&
		classad.Eval(attribute(m.Ad, "Requirements", "Start"), m.Ad, c.Ad, nil).IsTrue()
}

func (f *naiveFree) score(c *Class, m *Machine, mix *naiveMix) float64 {
	if c.Alone {
		return share.Weight(m.Total, mix.total)
	}
	if m.Total.GPUs == 0 {
		return mix.by.plain(c.Resources, f.sums(c), f.total, mix.largest)
	}
	var gauge gpu.Gauge
	var before, lost, idle int64
	if f.units == nil {
		before, _ = gauge.Sums(f.plain[gpu.Batch], mix.Mix, mix.set(m))
		lost, idle = gauge.Sums(f.plain[gpu.Batch].Sub(c.Resources), mix.Mix, mix.set(m))
	} else {
		p, _ := f.units.Place(c.request())
		before, _ = gauge.Units(f.units, mix.Mix, mix.set(m), nil)
		lost, idle = gauge.Units(f.units, mix.Mix, mix.set(m), &p)
	}
	return mix.by.fragments(c.Resources, lost-before, f.sums(c).Sub(c.Resources), m.Total, idle, mix.largest)
}
