package match

import (
	"cmp"
	"slices"

	"github.com/roost-batch/roost"
)

// preys reports whether a want may displace a claim of a machine where something may go on already.
func (p *plan) preys(w *want, m *Machine, c *Claim, s *scene) bool {
	switch {
	case c.Leaving || c.Taken || c.Band.Prod() || s.took(c.ID) || !p.budgeted(c):
		return false
	case c.Band < w.Band:
		return true
	}
	return c.Band == w.Band && w.Band == roost.Batch && (p.surplus(m, c) || p.dearer(w, m, c) || p.fairer(w, m, c))
}

// maxNodes bounds the search for the best victims on one machine. It begins with sets that will do; so what the bound costs is that a better one
// may be missed where there are many claims of many sizes.
const maxNodes = 400

// search looks for the victims of one unit on one machine. Its memory serves the next search.
type search struct {
	*plan
	w     *want
	m     *Machine
	stage stage
	list  []victim          // claims that may be evicted, those first that hurt least
	rest  []roost.Resources // what list[i:] hold together
	most  []roost.Resources // and at most, each
	set   []int             // places in list
	trial []int             // likewise
	best  []int
	found bool // best is one
	price cost // of best
	nodes int
	goal  roost.Resources
	have  roost.Resources // what is free, with what the set holds
}

// victim is a claim that may have to go.
type victim struct {
	*Claim
	at   int32 // its place in the machine's list
	ruin int   // 1: its task is not run again
	loss int64
	size roost.Resources // what sums gain of it: processor time of the class that is searched for, and memory
}

// weigh finds the best victims on a machine; false if there are none.
func (p *plan) weigh(w *want, at int) bool {
	s, m, scene := &p.search, p.Machines[at], p.scenes[at]
	s.plan, s.w, s.m, s.nodes, s.goal, s.found, s.price = p, w, m, maxNodes, w.Class.Resources, false, cost{}
	s.list, s.set, s.best = s.list[:0], s.set[:0], s.best[:0]
	for i := range m.Claims {
		if c := &m.Claims[i]; p.preys(w, m, c, scene) {
			s.list = append(s.list, s.victim(c, i))
		}
	}
	slices.SortFunc(s.list, func(a, b victim) int {
		return cmp.Or(cmp.Compare(a.ruin, b.ruin), cmp.Compare(a.Band, b.Band), cmp.Compare(a.loss, b.loss), cmp.Compare(b.ID, a.ID))
	})
	s.measure(at)
	if len(s.list) == 0 || s.short(s.have.Add(s.rest[0])) {
		return false
	}
	s.stage = p.newStage(w.Class, at)
	if !s.seed() {
		return false
	}
	s.branch(0, cost{})
	return true
}

func (s *search) victim(c *Claim, at int) victim {
	v := victim{Claim: c, at: int32(at), loss: c.lost(s.now)}
	if c.ruined() {
		v.ruin = 1
	}
	if !c.Placement.Reclaimed {
		v.size.Memory = c.Resources.Memory
		if c.App() == s.w.Class.App {
			v.size.CPU = c.Resources.CPU
		}
	}
	return v
}

// measure sums up what the claims hold.
func (s *search) measure(at int) {
	n := len(s.list)
	s.rest, s.most = sized(s.rest, n+1), sized(s.most, n+1)
	for k := n - 1; k >= 0; k-- {
		s.rest[k], s.most[k] = s.rest[k+1].Add(s.list[k].size), atLeast(s.most[k+1], s.list[k].size)
	}
	s.have = roost.Resources{}
	s.have.CPU, s.have.Memory = s.sums(s.w.Class.App, at)
}

// chosen adds the best victims to a list, those of the lowest band first, by their place.
func (s *search) chosen(list []int32) []int32 {
	slices.SortFunc(s.best, func(i, j int) int {
		return cmp.Or(cmp.Compare(s.list[i].Band, s.list[j].Band), cmp.Compare(s.list[i].at, s.list[j].at))
	})
	for _, k := range s.best {
		list = append(list, s.list[k].at)
	}
	return list
}

func (s *search) put(k int) {
	v := &s.list[k]
	s.set = append(s.set, k)
	s.have = s.have.Add(v.size)
	s.move(v, 1)
}

func (s *search) pull(k int) {
	v := &s.list[k]
	i := len(s.set) - 1
	for s.set[i] != k {
		i--
	}
	s.set = slices.Delete(s.set, i, i+1)
	s.have = s.have.Sub(v.size)
	s.move(v, -1)
}

// move gives the stage what a claim holds, or takes it back.
func (s *search) move(v *victim, by int) {
	if s.stage.f == nil && s.m.units == nil {
		s.stage.free.Memory += roost.Bytes(by) * v.Resources.Memory
		s.stage.free.Disk += roost.Bytes(by) * v.Resources.Disk
		if v.App() == s.w.Class.App {
			s.stage.free.CPU += roost.MilliCPU(by) * v.Resources.CPU
		}
		return
	}
	s.stage.move(v.placement(s.m), by)
}

// with is a cost and that of one claim more.
func (s *search) with(price cost, v *victim) cost {
	return price.with(v.Claim, s.now)
}

// note remembers the present set if it is better than the best.
func (s *search) note() {
	var price cost
	for _, k := range s.set {
		price = s.with(price, &s.list[k])
	}
	if !s.found || price.less(s.price) {
		s.keep(price)
	}
}

func (s *search) keep(price cost) {
	s.best, s.price, s.found = append(s.best[:0], s.set...), price, true
}

// seed finds sets that will do: all that hurt least until there is room, less what is not needed, from what hurts most on; and the one claim that
// makes room alone and hurts least. It is false if all together do not.
func (s *search) seed() bool {
	for k := 0; k < len(s.list) && !s.stage.fits(); k++ {
		s.put(k)
	}
	if len(s.set) == 0 || !s.stage.fits() {
		return false
	}
	s.trim()
	for len(s.set) > 0 {
		s.pull(s.set[len(s.set)-1])
	}
	for k := range s.list {
		s.put(k)
		if s.stage.fits() {
			s.note()
			s.pull(k)
			break
		}
		s.pull(k)
	}
	return true
}

// trim takes out of the set what is not needed, what hurts most first, and notes what is left.
func (s *search) trim() {
	s.trial = append(s.trial[:0], s.set...)
	for _, k := range slices.Backward(s.trial) {
		if s.pull(k); !s.stage.fits() {
			s.put(k)
		}
	}
	s.note()
}

// branch looks at all sets that go on from the present one with claims from k on, as far as they may be better than the best.
func (s *search) branch(k int, price cost) {
	if s.nodes--; s.nodes < 0 || !price.less(s.price) {
		return
	}
	if s.stage.fits() {
		if len(s.set) > 0 {
			s.keep(price)
		}
		return
	}
	if k == len(s.list) || s.short(s.have.Add(s.rest[k])) || !s.hopeful(k, price) {
		return
	}
	s.put(k)
	s.branch(k+1, s.with(price, &s.list[k]))
	s.pull(k)
	s.branch(k+1, price)
}

func (s *search) short(have roost.Resources) bool {
	return s.goal.CPU > have.CPU || s.goal.Memory > have.Memory
}

// hopeful reports whether the least that has to be added to the set may leave it better than the best.
func (s *search) hopeful(k int, price cost) bool {
	n := max(1, steps(s.goal.CPU-s.have.CPU, s.most[k].CPU), steps(s.goal.Memory-s.have.Memory, s.most[k].Memory))
	v := &s.list[k]
	if v.Band == roost.Free {
		price.free += n
	} else {
		price.batch += n
	}
	price.ruined += n * v.ruin
	price.lost += int64(n) * v.loss
	return price.less(s.price)
}
