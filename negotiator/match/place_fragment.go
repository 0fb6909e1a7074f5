package match

import (
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// On machines with GPUs a placement is judged by how much more of their idle GPUs it
// makes useless to the pool's mix, as fragmentation gradient descent does (Weng et al.,
// ATC 2023, §4.3), and a little by best fit: of two places that lose as much, the one
// that leaves less. Which cards of the machine are taken package gpu says, as the machine
// itself would: shares go to the fullest card with room.

// bestFitWeight is what best fit weighs beside fragments, whose unit is one card that is
// lost to everybody.
const bestFitWeight = 0.07

// nonGPUPenalty keeps tasks without GPUs off machines with GPUs while others have room:
// no score of those is higher.
const nonGPUPenalty = 3

// fragmentState is what a matcher knows of the use of GPUs. It is kept from one plan to
// the next; a pool without GPUs leaves it empty.
type fragmentState struct {
	claims         map[mixRequest]int // of all machines, how many
	largest        roost.Resources    // what the largest machines have
	needs          []weightedRequest  // of mix
	mix            *gpu.RequestMix
	mixCount       int // how many there have been
	meter          gpu.FragmentationMeter
	measuredBefore []fragmentationCache // by machine
}

// fragmentationCache is what is lost on a machine as it stands. It holds for one mix, one
// ad, one beginning and one number of placements.
type fragmentationCache struct {
	mix          int
	machine      *Machine
	initialFree  int
	version      int32
	needSet      uint64 // the needs that may have the machine
	unusableGPUs int64
}

// countClaims takes a machine's claims into the mix, or out of it.
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

// replaceMachine takes in a new ad of a machine; ok is false if there may be no other
// that is as large as this was.
func (g *fragmentState) replaceMachine(old, m *Machine) (ok bool) {
	g.countClaims(old, -1)
	g.countClaims(m, 1)
	g.largest = maxResources(g.largest, m.Total)
	return old.Total == m.Total || !isLargest(old.Total, g.largest)
}

// isLargest reports whether a machine has as much of something as the largest.
func isLargest(r, largest roost.Resources) bool {
	return r.CPU == largest.CPU || r.GPUs == largest.GPUs || r.Memory == largest.Memory
}

// recountClaims takes in machines of which some have come or gone.
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

// noMix is a mix of nothing, to which nothing is lost.
var noMix = gpu.NewMix(nil)

// makeMix makes the mix, where there are GPUs.
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

// placementScore says how badly a unit sits on a machine, f by its units, where p.spot
// says; less is better.
func (p *negotiationCycle) placementScore(c *RequestClass, at int, f *gpu.FreeResources) float64 {
	free, total := p.roomBySums(c, at), &p.machineTotals[at]
	if c.Exclusive {
		return fairshare.CoresWorth(p.Machines[at].Total, p.poolTotal) // the less it takes from others the better
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

// fragmentScore judges a unit by the fragments that it makes, and by what it leaves.
func fragmentScore(unit roost.Resources, more int64, cpu roost.MilliCPU, idle int64, largest roost.Resources) float64 {
	const device = gpu.SharesPerGPU * gpu.MixWeight
	left := float64(cpu)/float64(max(largest.CPU, 1)) + float64(idle)/float64(largest.GPUs*gpu.SharesPerGPU)
	s := float64(more)/device + float64(bestFitWeight*left/2)
	if unit.GPUs == 0 {
		s += nonGPUPenalty
	}
	return s
}

// fragmentationOf is what is lost on a machine as it stands. It is measured again only
// when that has changed, or the mix.
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
