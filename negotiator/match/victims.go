package match

import (
	"cmp"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// larder is what the claims of a machine up to a band would make room for.
type larder struct {
	claims int
	cpu    [2]roost.MilliCPU // by class, with GPUs and without
	memory roost.Bytes
	most   [2]roost.MilliCPU // one of them, at most
	ample  roost.Bytes       // likewise, of memory
	idle   bool              // on some nothing runs
	late   int64             // the latest second at which work began, or was saved, that would be lost
	saves  int64             // likewise, of tasks that can be saved
}

// lost is how much work is lost at least if one of them is evicted.
func (l *larder) lost(now int64) int64 {
	if l.idle {
		return 0
	}
	least := int64(1 << 62)
	if l.late > 0 {
		least = max(now-l.late, 0)
	}
	if l.saves > 0 {
		least = min(least, savedCost, max(now-l.saves, 0))
	}
	return least
}

// stock notes who might be evicted, by bands that include those below.
func (m *Machine) stock() {
	for i := range m.Claims {
		c := &m.Claims[i]
		m.leaves = m.leaves || c.Leaving
		if c.Leaving || c.Band.Prod() {
			continue
		}
		for band := c.Band; band <= roost.Batch; band++ {
			l := &m.prey[band]
			l.claims++
			if !c.Placement.Reclaimed {
				l.cpu[c.App()] += c.Resources.CPU
				l.memory += c.Resources.Memory
				l.most[c.App()] = max(l.most[c.App()], c.Resources.CPU)
				l.ample = max(l.ample, c.Resources.Memory)
			}
			switch safe := max(c.Since, c.Saved); {
			case c.Since == 0:
				l.idle = true
			case c.Checkpoint:
				l.saves = max(l.saves, safe)
			default:
				l.late = max(l.late, safe)
			}
		}
	}
	m.leaves = m.leaves || len(m.Heirs) > 0
}

// atLeast is what it costs at least to make room on a machine; not ok if even all that may be evicted would not be enough.
func (p *plan) atLeast(w *want, at int, top roost.Band) (least cost, ok bool) {
	m, r := p.Machines[at], w.Class.Resources
	cpu, memory := p.sums(w.Class.App, at)
	for band := roost.Free; band <= top; band++ {
		l := &m.prey[band]
		if l.claims == 0 || r.CPU > cpu+l.cpu[w.Class.App] || r.Memory > memory+l.memory {
			continue
		}
		if band == roost.Batch {
			return cost{batch: 1}, true
		}
		least.free = max(1, steps(r.CPU-cpu, l.most[w.Class.App]), steps(r.Memory-memory, l.ample))
		least.lost = int64(least.free) * l.lost(p.now)
		return least, true
	}
	return cost{}, false
}

// sums is what is free of a machine in all, whatever the queues say.
func (p *plan) sums(app gpu.Class, at int) (cpu roost.MilliCPU, memory roost.Bytes) {
	f := p.units[at]
	if f == nil {
		if app == gpu.Stream {
			return p.stream[at], p.free[at].Memory
		}
		return p.free[at].CPU, p.free[at].Memory
	}
	for i := range f.Len() {
		u := f.UnitFree(i, app)
		cpu, memory = cpu+u.CPU, memory+u.Memory
	}
	return cpu, memory
}

// placement is what a claim holds, in a form that can be counted with. On a machine that says nothing of units it is all of one.
func (c *Claim) placement(m *Machine) gpu.Placement {
	if m.units != nil {
		return c.Placement
	}
	return gpu.Placement{Class: c.App(), Disk: c.Resources.Disk, Parts: []gpu.Part{{CPU: c.Resources.CPU, Memory: c.Resources.Memory}}}
}

// prey reports whether a want may displace a claim.
func (p *plan) preys(w *want, m *Machine, c *Claim) bool {
	switch {
	case c.Leaving || c.Taken || c.Band.Prod() || p.scenes[int(m.at)].took(c.ID) || !p.budgeted(c):
		return false
	case c.Band < w.Band:
		return true
	}
	return c.Band == w.Band && w.Band == roost.Batch && p.fairer(w, m, c)
}

// maxNodes bounds the search for the best victims on one machine. It begins with sets that will do; so what the bound costs is that a better one
// may be missed where there are many claims of many sizes.
const maxNodes = 400

// search looks for the victims of one unit on one machine.
type search struct {
	*plan
	w     *want
	at    int
	stage stage
	list  []int // claims that may be evicted, those first that hurt least
	sizes []roost.Resources
	rest  []roost.Resources // what list[i:] hold together
	most  []roost.Resources // and at most, each
	set   []int             // places in list
	best  []int
	price cost // of best
	nodes int
	goal  roost.Resources
	have  roost.Resources // what is free, with what the set holds
}

// weigh finds the best victims on a machine; false if there are none.
func (p *plan) weigh(w *want, q *quarry) bool {
	at, m := int(q.at), p.Machines[q.at]
	s := search{plan: p, w: w, at: at, nodes: maxNodes, goal: w.Class.Resources}
	if p.exhausted() {
		return false
	}
	for i := range m.Claims {
		if p.preys(w, m, &m.Claims[i]) {
			s.list = append(s.list, i)
		}
	}
	slices.SortFunc(s.list, func(i, j int) int {
		a, b := &m.Claims[i], &m.Claims[j]
		return cmp.Or(cmp.Compare(a.Band, b.Band), cmp.Compare(a.lost(p.now), b.lost(p.now)), cmp.Compare(b.ID, a.ID))
	})
	s.stage = p.newStage(w.Class, at)
	s.measure(m)
	if !s.seed() {
		return false
	}
	s.branch(0, cost{})
	q.victims = q.victims[:0]
	for _, k := range s.best {
		q.victims = append(q.victims, s.list[k])
	}
	slices.Sort(q.victims)
	slices.SortStableFunc(q.victims, func(i, j int) int { return cmp.Compare(m.Claims[i].Band, m.Claims[j].Band) })
	q.cost, q.version = s.price, p.versions[at]
	return p.affords(m, q.victims)
}

// measure notes what the claims hold of what sums can be made of: processor time of the class, and memory.
func (s *search) measure(m *Machine) {
	n := len(s.list)
	s.sizes, s.rest, s.most = make([]roost.Resources, n), make([]roost.Resources, n+1), make([]roost.Resources, n+1)
	for k := n - 1; k >= 0; k-- {
		c := &m.Claims[s.list[k]]
		if r := &s.sizes[k]; !c.Placement.Reclaimed {
			r.Memory = c.Resources.Memory
			if c.App() == s.w.Class.App {
				r.CPU = c.Resources.CPU
			}
		}
		s.rest[k], s.most[k] = s.rest[k+1].Add(s.sizes[k]), atLeast(s.most[k+1], s.sizes[k])
	}
	s.have.CPU, s.have.Memory = s.sums(s.w.Class.App, s.at)
}

func (s *search) claim(k int) *Claim { return &s.Machines[s.at].Claims[s.list[k]] }

func (s *search) put(k int) {
	s.set = append(s.set, k)
	s.stage.give(s.claim(k).placement(s.Machines[s.at]))
	s.have = s.have.Add(s.sizes[k])
}

func (s *search) pull(k int) {
	s.set = slices.DeleteFunc(s.set, func(o int) bool { return o == k })
	s.stage.take(s.claim(k).placement(s.Machines[s.at]))
	s.have = s.have.Sub(s.sizes[k])
}

// note remembers the present set if it is better than the best.
func (s *search) note() {
	var price cost
	for _, k := range s.set {
		price = price.with(s.claim(k), s.now)
	}
	if s.best == nil || price.less(s.price) {
		s.best, s.price = slices.Clone(s.set), price
	}
}

// seed finds sets that will do: all that hurt least until there is room, less what is not needed, from what hurts most on; and the one claim that
// makes room alone and hurts least. It is false if all together do not.
func (s *search) seed() bool {
	k := 0
	for ; k < len(s.list) && !s.stage.fits(); k++ {
		s.put(k)
	}
	if len(s.set) == 0 || !s.stage.fits() {
		return false
	}
	s.trim(func(a, b int) int { return cmp.Compare(b, a) })
	for _, k := range slices.Clone(s.set) {
		s.pull(k)
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

// trim takes out of the set, in some order, what is not needed, and notes what is left.
func (s *search) trim(order func(a, b int) int) {
	all := slices.Clone(s.set)
	slices.SortFunc(all, order)
	for _, k := range all {
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
			s.best, s.price = slices.Clone(s.set), price
		}
		return
	}
	if k == len(s.list) || s.short(s.have.Add(s.rest[k])) || !s.hopeful(k, price) {
		return
	}
	s.put(k)
	s.branch(k+1, price.with(s.claim(k), s.now))
	s.pull(k)
	s.branch(k+1, price)
}

func (s *search) short(have roost.Resources) bool {
	return s.goal.CPU > have.CPU || s.goal.Memory > have.Memory
}

// hopeful reports whether the least that has to be added to the set may leave it better than the best.
func (s *search) hopeful(k int, price cost) bool {
	n := max(1, steps(s.goal.CPU-s.have.CPU, s.most[k].CPU), steps(s.goal.Memory-s.have.Memory, s.most[k].Memory))
	if c := s.claim(k); c.Band == roost.Free {
		price.free += n
	} else {
		price.batch += n
		price.lost += int64(n) * c.lost(s.now)
	}
	return price.less(s.price)
}

// steps is how many of that size it takes at least.
func steps[T roost.MilliCPU | roost.Bytes](missing, size T) int {
	if missing <= 0 || size <= 0 {
		return 0
	}
	return int((missing + size - 1) / size)
}

// JobName is the job of a claim's task, "" if it is not known.
func (c *Claim) JobName() string {
	head, rest, ok := strings.Cut(c.Job, "[")
	if !ok {
		return c.Job
	}
	_, host, _ := strings.Cut(rest, "]")
	return head + host
}
