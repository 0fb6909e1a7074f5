package match

import (
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// On machines with GPUs the score of a placement is how many more of their idle GPUs it
// makes useless to the pool's mix, as fragmentation gradient descent does (Weng et al.,
// ATC 2023, §4.3), and a little best fit. Of two placements that make as many useless,
// the better is the one that leaves less. Package gpu chooses the devices within the
// machine, as the machine itself would: shares go to the fullest device with room.

// bestFitWeight is the weight of best fit beside fragmentation. The unit of fragmentation
// is one GPU that no request of the mix can use.
const bestFitWeight = 0.07

// nonGPUPenalty steers tasks without GPUs away from machines with GPUs while others have
// room. No score of a machine without GPUs is higher.
const nonGPUPenalty = 3

// fragmentState is what a matcher knows of the use of GPUs. It is retained from cycle to
// cycle; in a pool without GPUs it is empty.
type fragmentState struct {
	claims         map[mixRequest]int // number of claims on all machines, by kind
	largest        roost.Resources    // the largest amount of each resource that any machine has
	needs          []weightedRequest  // the needs in mix
	mix            *gpu.RequestMix
	mixCount       int // number of the mix; rises when the mix changes
	meter          gpu.FragmentationMeter
	measuredBefore []fragmentationCache // by machine
}

// fragmentationCache is the number of GPUs that are useless on a machine before a
// placement. It is valid for one mix, one ad, one reset and one version of the machine.
type fragmentationCache struct {
	mix          int
	machine      *Machine
	initialFree  int
	version      int32
	needSet      uint64 // bit set: the needs that match the machine
	unusableGPUs int64
}

// countClaims adds a machine's claims to the mix, or removes them.
func (g *fragmentState) countClaims(m *Machine, by int) {
	for i := range m.Claims {
		if c := &m.Claims[i]; m.Total.GPUs > 0 {
			if g.claims == nil {
				g.claims = map[mixRequest]int{}
			}
			k := c.mixRequest()
			if g.claims[k] += by; g.claims[k] == 0 {
				delete(g.claims, k)
			}
		}
	}
}

// replaceMachine takes over a new ad of a machine. ok is false if no other machine may be
// as large as the old one.
func (g *fragmentState) replaceMachine(old, m *Machine) (ok bool) {
	g.countClaims(old, -1)
	g.countClaims(m, 1)
	g.largest = maxResources(g.largest, m.Total)
	return old.Total == m.Total || !isLargest(old.Total, g.largest)
}

// isLargest reports whether a machine has as much of some resource as the largest.
func isLargest(r, largest roost.Resources) bool {
	return r.CPU == largest.CPU || r.GPUs == largest.GPUs || r.Memory == largest.Memory
}

// recountClaims counts the claims again when machines have come or gone.
func (g *fragmentState) recountClaims(machines []*Machine) {
	clear(g.claims)
	g.largest = roost.Resources{}
	for _, m := range machines {
		g.countClaims(m, 1)
		g.largest = maxResources(g.largest, m.Total)
	}
	g.measuredBefore = nil
	if g.largest.GPUs > 0 {
		g.measuredBefore = make([]fragmentationCache, len(machines))
	}
}

// noMix is an empty mix, for which no GPU is useless.
var noMix = gpu.NewMix(nil)

// makeMix updates the mix of a pool with GPUs.
func (p *negotiationCycle) makeMix() {
	g := &p.fragmentation
	if p.poolTotal.GPUs == 0 {
		return
	}
	if g.measuredBefore == nil {
		g.measuredBefore = make([]fragmentationCache, len(p.Machines))
	}
	needs := chooseMix(countMixRequests(p.Requests, g.claims, p.poolTotal.GPUs, p.Score), p.Score)
	if g.mix == nil || !slices.EqualFunc(needs, g.needs, func(a, b weightedRequest) bool {
		return a.mixRequest == b.mixRequest && a.tasks == b.tasks && a.class == b.class
	}) {
		g.needs, g.mix = needs, mixOf(needs)
		g.mixCount++
	}
}

// placementScore scores a unit on a machine at p.lastPlacement; lower is better. f is
// what is free by unit, or nil.
func (p *negotiationCycle) placementScore(c *RequestClass, at int, f *gpu.FreeResources) float64 {
	free, total := p.roomBySums(c, at), &p.machineTotals[at]
	if c.Exclusive {
		// the less it takes from others, the better
		return fairshare.CoresWorth(p.Machines[at].Total, p.poolTotal)
	}
	if p.Score == LeastLoaded {
		return p.siteScores().loadScore(c, at)
	}
	if total.GPUs == 0 {
		return p.Score.scoreWithoutGPUs(c.Resources, free, *total, p.fragmentation.largest)
	}
	g := &p.fragmentation
	before, mix := &fragmentationCache{}, noMix
	if p.Score.usesFragmentation() {
		before, mix = p.fragmentationOf(at, f), g.mix
	}
	var lost, idle int64
	if f != nil {
		lost, idle = g.meter.MeasureUnits(f, mix, before.needSet, &p.lastPlacement)
	} else {
		lost, idle = g.meter.MeasureSums(p.free[at].Sub(c.Resources), mix, before.needSet)
	}
	return p.Score.scoreWithGPUs(c.Resources, lost-before.unusableGPUs, free.Sub(c.Resources), *total, idle, g.largest)
}

// fragmentScore scores a unit by the fragments that it makes, and by what it leaves.
func fragmentScore(unit roost.Resources, more int64, cpu roost.MilliCPU, idle int64, largest roost.Resources) float64 {
	const device = gpu.SharesPerGPU * gpu.MixWeight
	left := float64(cpu)/float64(max(largest.CPU, 1)) + float64(idle)/float64(largest.GPUs*gpu.SharesPerGPU)
	s := float64(more)/device + float64(bestFitWeight*left/2)
	if unit.GPUs == 0 {
		s += nonGPUPenalty
	}
	return s
}

// fragmentationOf returns the useless GPUs of a machine before a placement. It measures
// again only when the machine or the mix has changed.
func (p *negotiationCycle) fragmentationOf(at int, f *gpu.FreeResources) *fragmentationCache {
	g, m := &p.fragmentation, p.Machines[at]
	b := &g.measuredBefore[at]
	if b.mix != g.mixCount || b.machine != m {
		*b = fragmentationCache{mix: g.mixCount, machine: m}
		for i, n := range g.needs {
			if n.class == nil {
				b.needSet |= 1 << i
			} else if _, ok := p.compiledQuery(n.class).Match(m.row, &p.env); ok {
				b.needSet |= 1 << i
			}
		}
	}
	if began, version := p.resetCycle[at], p.versions[at]; b.initialFree != began || b.version != version {
		b.initialFree, b.version = began, version
		if f != nil {
			b.unusableGPUs, _ = g.meter.MeasureUnits(f, g.mix, b.needSet, nil)
		} else {
			b.unusableGPUs, _ = g.meter.MeasureSums(p.free[at], g.mix, b.needSet)
		}
	}
	return b
}
