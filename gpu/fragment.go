package gpu

import (
	"cmp"
	"slices"

	"github.com/roost-batch/roost"
)

// An idle GPU is lost to a request that cannot have it: because the cores beside it are taken, because too little of the card is left, or because
// the machine has too few such cards. How much is lost on the average over the requests that a pool is typically asked for is how fragmented a
// machine is (Weng et al., Beware of Fragmentation, USENIX ATC 2023, §4). Who places each task where this grows least keeps the most usable
// for those who come later; best fit looks at sums only, and leaves cards behind that nobody can use.

// What sums of fragments are counted in: whole numbers, so that they are the same in whatever order they are added.
const (
	CardParts = 1024 // of a card; a share of its memory is rounded down to so many parts
	MixWeight = 1024 // about what the weights of a mix add up to
	MaxNeeds  = 64   // how many kinds of requests a mix has at most
)

// Need is one kind of request in a mix, and how much of MixWeight it makes up.
type Need struct {
	Request
	Weight int
}

// Mix is what a pool is typically asked for. It does not change.
type Mix struct{ groups []group }

// group is the needs that want the same of cards.
type group struct {
	gpus  int
	share roost.Bytes // of each; 0 for whole ones
	needs []setNeed   // by CPU, rising
}

type setNeed struct {
	Need
	bit uint64 // in a set of needs
}

// AllNeeds is the set of all needs of a mix; the i-th alone is 1<<i.
const AllNeeds = ^uint64(0)

// NewMix makes a mix of at most MaxNeeds needs. Those without GPUs are left out: all idle GPUs are lost to them, wherever they are.
func NewMix(needs []Need) *Mix {
	m := &Mix{}
	for i, n := range needs {
		if n.GPUs == 0 {
			continue
		}
		at := slices.IndexFunc(m.groups, func(g group) bool { return g.gpus == n.GPUs && g.share == n.GPUMemory })
		if at < 0 {
			at = len(m.groups)
			m.groups = append(m.groups, group{gpus: n.GPUs, share: n.GPUMemory})
		}
		m.groups[at].needs = append(m.groups[at].needs, setNeed{n, 1 << i})
	}
	for _, g := range m.groups {
		slices.SortStableFunc(g.needs, func(a, b setNeed) int { return cmp.Compare(a.CPU, b.CPU) })
	}
	return m
}

// Gauge measures fragments. It keeps memory from one measurement to the next, and is for one goroutine.
type Gauge struct {
	cards []idleCard
	idle  int64
	alike bool // all cards have the same cores and memory beside them
}

// idleCard is a card of which something is idle.
type idleCard struct {
	parts int64
	free  roost.Bytes
	whole bool
	beside
}

// beside is the processor time and the memory that a task on a card could be given. What is lent by others does not count: they may want it back.
type beside struct {
	cpu    [2]roost.MilliCPU // by class
	memory roost.Bytes
}

func (r *beside) holds(n *setNeed, of int) bool {
	return n.CPU/roost.MilliCPU(of) <= r.cpu[n.Class] && n.Memory/roost.Bytes(of) <= r.memory
}

// Units measures what of a machine's idle GPUs is lost to the needs of a mix, in CardParts times MixWeight, and what is idle, in CardParts, once
// taken has been taken; nil for as things stand. Of the needs, only those in the set may have the machine at all. Devices that are not well are
// nobody's.
func (g *Gauge) Units(f *Free, m *Mix, set uint64, taken *Placement) (lost, idle int64) {
	g.cards, g.idle, g.alike = g.cards[:0], 0, true
	lent := f.lent(taken)
	for i := range f.devices {
		d := &f.devices[i]
		if !d.Health.OK {
			continue
		}
		c := idleCard{free: d.Free, whole: d.Tasks == 0, beside: lent}
		if !f.units[d.Unit].borrows() {
			g.alike = false
			c.beside = f.left(d.Unit, taken)
		}
		if taken != nil {
			for _, s := range taken.Shares {
				if s.Device == i {
					c.free, c.whole = c.free-s.Memory, false
				}
			}
		}
		if d.Memory > 0 {
			c.parts = int64(float64(c.free) / float64(d.Memory) * CardParts)
		} else if c.whole {
			c.parts = CardParts
		}
		g.add(c)
	}
	return g.lost(m, set), g.idle
}

// Sums is Units for a machine that tells only sums, of what is free.
func (g *Gauge) Sums(free roost.Resources, m *Mix, set uint64) (lost, idle int64) {
	g.cards, g.idle, g.alike = g.cards[:0], 0, true
	for range free.GPUs {
		g.add(idleCard{parts: CardParts, whole: true, beside: beside{[2]roost.MilliCPU{free.CPU, free.CPU}, free.Memory}})
	}
	return g.lost(m, set), g.idle
}

func (g *Gauge) add(c idleCard) {
	if c.parts > 0 {
		g.cards, g.idle = append(g.cards, c), g.idle+c.parts
	}
}

// lent is what cards without cores of their own can have: of the unit that lends, of several the one with the most processor time.
func (f *Free) lent(taken *Placement) (most beside) {
	for i := range f.units {
		if u := &f.units[i]; u.borrows() || f.cpuOnly && len(u.Devices) > 0 {
			continue
		}
		if r := f.left(i, taken); r.cpu[Batch] >= most.cpu[Batch] {
			most = r
		}
	}
	return most
}

// left is what is free of the i-th unit.
func (f *Free) left(i int, taken *Placement) beside {
	r := beside{f.units[i].cpu, f.units[i].memory}
	if taken != nil && !taken.Reclaimed {
		for _, p := range taken.Parts {
			if p.Unit == i {
				r.cpu[taken.Class] -= p.CPU
				r.memory -= p.Memory
			}
		}
	}
	return r
}

// lost is all that is idle, as often as there are needs, less what each can have of it.
func (g *Gauge) lost(m *Mix, set uint64) int64 {
	if len(g.cards) == 0 {
		return 0
	}
	lost := g.idle * MixWeight
	for i := range m.groups {
		if g.alike {
			lost -= g.had(&m.groups[i], set)
		} else {
			lost -= g.hadByEach(&m.groups[i], set)
		}
	}
	return lost
}

// had is what the needs of a group can have of cards whose cores are the same: all the same, if it is anything.
func (g *Gauge) had(of *group, set uint64) int64 {
	weight := 0
	for j := range of.needs {
		n := &of.needs[j]
		if n.CPU > g.cards[0].cpu[Batch] && n.CPU > g.cards[0].cpu[Stream] {
			break
		}
		if n.bit&set != 0 && g.cards[0].holds(n, 1) {
			weight += n.Weight
		}
	}
	if weight == 0 {
		return 0
	}
	usable, count := int64(0), 0
	for k := range g.cards {
		if c := &g.cards[k]; of.has(c) {
			usable, count = usable+c.parts, count+1
		}
	}
	if count < of.gpus {
		return 0
	}
	return usable * int64(weight)
}

// hadByEach is had for cards that have cores of their own: a need that wants several takes an even part of each's.
func (g *Gauge) hadByEach(of *group, set uint64) (sum int64) {
	for j := range of.needs {
		n := &of.needs[j]
		if n.bit&set == 0 {
			continue
		}
		usable, count := int64(0), 0
		for k := range g.cards {
			if c := &g.cards[k]; of.has(c) && c.holds(n, of.gpus) {
				usable, count = usable+c.parts, count+1
			}
		}
		if count >= of.gpus {
			sum += usable * int64(n.Weight)
		}
	}
	return sum
}

// has reports whether a card has what a group wants of it.
func (of *group) has(c *idleCard) bool {
	if of.share == 0 {
		return c.whole
	}
	return c.free >= of.share
}
