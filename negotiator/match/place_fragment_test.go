package match

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// naiveMix is the mix of a snapshot, for all its machines.
type naiveMix struct {
	*gpu.RequestMix
	needs   []weightedRequest
	largest roost.Resources
	total   roost.Resources // of the pool
	by      ScorePolicy
}

func newNaiveMix(s *Snapshot) *naiveMix {
	n := &naiveMix{by: s.Score}
	gpus, claims := 0, map[mixRequest]int{}
	for _, m := range s.Machines {
		n.largest, n.total = maxResources(n.largest, m.Total), n.total.Add(m.Total)
		gpus += m.Total.GPUs
		for _, c := range m.Claims {
			if m.Total.GPUs > 0 {
				claims[c.mixRequest()]++
			}
		}
	}
	n.needs = chooseMix(countMixRequests(s.Requests, claims, gpus, s.Score), s.Score)
	n.RequestMix = mixOf(n.needs)
	return n
}

// set returns the needs that match the machine.
func (n *naiveMix) set(m *Machine) (set uint64) {
	for i, c := range n.needs {
		if c.class == nil || agree(c.class, m) {
			set |= 1 << i
		}
	}
	return set
}

// agree reports whether the Requirements of both sides hold.
func agree(c *RequestClass, m *Machine) bool {
	return classad.Eval(attribute(c.Ad, "Requirements"), c.Ad, m.Ad, nil).IsTrue() &&
		classad.Eval(attribute(m.Ad, "Requirements", "Start"), m.Ad, c.Ad, nil).IsTrue()
}

func (f *naiveFree) score(c *RequestClass, m *Machine, mix *naiveMix) float64 {
	if c.Exclusive {
		return fairshare.CoresWorth(m.Total, mix.total)
	}
	if m.Total.GPUs == 0 {
		return mix.by.scoreWithoutGPUs(c.Resources, f.sums(c), f.total, mix.largest)
	}
	var gauge gpu.FragmentationMeter
	var before, lost, idle int64
	if f.units == nil {
		before, _ = gauge.MeasureSums(f.sumsByClass[gpu.BatchClass], mix.RequestMix, mix.set(m))
		lost, idle = gauge.MeasureSums(f.sumsByClass[gpu.BatchClass].Sub(c.Resources), mix.RequestMix, mix.set(m))
	} else {
		p, _ := f.units.PlaceOrExplain(c.deviceRequest())
		before, _ = gauge.MeasureUnits(f.units, mix.RequestMix, mix.set(m), nil)
		lost, idle = gauge.MeasureUnits(f.units, mix.RequestMix, mix.set(m), &p)
	}
	return mix.by.scoreWithGPUs(c.Resources, lost-before, f.sums(c).Sub(c.Resources), m.Total, idle, mix.largest)
}
