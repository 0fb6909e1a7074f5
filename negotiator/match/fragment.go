package match

import (
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/share"
)

// On machines with GPUs a placement is judged by how much more of their idle GPUs it makes useless to the pool's mix, as fragmentation gradient
// descent does (Weng et al., ATC 2023, §4.3), and a little by best fit: of two places that lose as much, the one that leaves less. Which cards
// of the machine are taken package gpu says, as the machine itself would: shares go to the fullest card with room.

// bestFit is what best fit weighs beside fragments, whose unit is one card that is lost to everybody.
const bestFit = 0.07

// aside keeps tasks without GPUs off machines with GPUs while others have room: no score of those is higher.
const aside = 3

// fragments is what a matcher knows of the use of GPUs. It is kept from one plan to the next; a pool without GPUs leaves it empty.
type fragments struct {
	claims  map[kind]int    // of all machines, how many
	largest roost.Resources // what the largest machines have
	needs   []counted       // of mix
	mix     *gpu.Mix
	mixes   int // how many there have been
	gauge   gpu.Gauge
	before  []measured // by machine
}

// measured is what is lost on a machine as it stands. It holds for one mix, one ad, one beginning and one number of placements.
type measured struct {
	mix     int
	machine *Machine
	began   int
	version int32
	set     uint64 // the needs that may have the machine
	lost    int64
}

// count takes a machine's claims into the mix, or out of it.
func (g *fragments) count(m *Machine, by int) {
	for i := range m.Claims {
		if c := &m.Claims[i]; m.Total.GPUs > 0 {
			if g.claims == nil {
				g.claims = map[kind]int{}
			}
			k := c.kind()
			if g.claims[k] += by; g.claims[k] == 0 {
				delete(g.claims, k)
			}
		}
	}
}

// replace takes in a new ad of a machine; ok is false if there may be no other that is as large as this was.
func (g *fragments) replace(old, m *Machine) (ok bool) {
	g.count(old, -1)
	g.count(m, 1)
	g.largest = atLeast(g.largest, m.Total)
	return old.Total == m.Total || !reaches(old.Total, g.largest)
}

// reaches reports whether a machine has as much of something as the largest.
func reaches(r, largest roost.Resources) bool {
	return r.CPU == largest.CPU || r.GPUs == largest.GPUs || r.Memory == largest.Memory
}

// recount takes in machines of which some have come or gone.
func (g *fragments) recount(machines []*Machine) {
	clear(g.claims)
	g.largest = roost.Resources{}
	for _, m := range machines {
		g.count(m, 1)
		g.largest = atLeast(g.largest, m.Total)
	}
	g.before = nil
	if g.largest.GPUs > 0 {
		g.before = make([]measured, len(machines))
	}
}

// noMix is a mix of nothing, to which nothing is lost.
var noMix = gpu.NewMix(nil)

// judgeGPUs makes the mix, where there are GPUs.
func (p *plan) judgeGPUs() {
	g := &p.gpus
	if p.total.GPUs == 0 {
		return
	}
	if g.before == nil {
		g.before = make([]measured, len(p.Machines))
	}
	needs := chooseNeeds(countKinds(p.Requests, g.claims, p.total.GPUs, p.Score), p.Score)
	if g.mix == nil || !slices.EqualFunc(needs, g.needs, func(a, b counted) bool { return a.kind == b.kind && a.tasks == b.tasks && a.class == b.class }) {
		g.needs, g.mix = needs, mixOf(needs)
		g.mixes++
	}
}

// badness says how badly a unit sits on a machine, f by its units, where p.spot says; less is better.
func (p *plan) badness(c *Class, at int, f *gpu.Free) float64 {
	free, total := p.room(c, at), &p.totals[at]
	if c.Alone {
		return share.Weight(p.Machines[at].Total, p.total) // the less it takes from others the better
	}
	if total.GPUs == 0 {
		return p.Score.plain(c.Resources, free, *total, p.gpus.largest)
	}
	g := &p.gpus
	before, mix := &measured{}, noMix
	if p.Score.measures() {
		before, mix = p.measure(at, f), g.mix
	}
	var lost, idle int64
	if f != nil {
		lost, idle = g.gauge.Units(f, mix, before.set, &p.spot)
	} else {
		lost, idle = g.gauge.Sums(p.free[at].Sub(c.Resources), mix, before.set)
	}
	return p.Score.fragments(c.Resources, lost-before.lost, free.Sub(c.Resources), *total, idle, g.largest)
}

// fragmentScore judges a unit by the fragments that it makes, and by what it leaves.
func fragmentScore(unit roost.Resources, more int64, cpu roost.MilliCPU, idle int64, largest roost.Resources) float64 {
	const card = gpu.CardParts * gpu.MixWeight
	left := float64(cpu)/float64(max(largest.CPU, 1)) + float64(idle)/float64(largest.GPUs*gpu.CardParts)
	s := float64(more)/card + float64(bestFit*left/2)
	if unit.GPUs == 0 {
		s += aside
	}
	return s
}

// measure is what is lost on a machine as it stands. It is measured again only when that has changed, or the mix.
func (p *plan) measure(at int, f *gpu.Free) *measured {
	g, m := &p.gpus, p.Machines[at]
	b := &g.before[at]
	if b.mix != g.mixes || b.machine != m {
		*b = measured{mix: g.mixes, machine: m}
		for i, n := range g.needs {
			if n.class == nil {
				b.set |= 1 << i
			} else if _, ok := p.query(n.class).Match(m.row, &p.env); ok {
				b.set |= 1 << i
			}
		}
	}
	if began, version := p.stamp[at], p.versions[at]; b.began != began || b.version != version {
		b.began, b.version = began, version
		if f != nil {
			b.lost, _ = g.gauge.Units(f, g.mix, b.set, nil)
		} else {
			b.lost, _ = g.gauge.Sums(p.free[at], g.mix, b.set)
		}
	}
	return b
}
