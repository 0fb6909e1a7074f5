package match

import (
	"container/heap"
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// A unit that finds no room may displace claims (Borg §3.2, DESIGN §6): only of strictly lower bands, of which prod is one and is not displaced; and in
// batch, where the administrator lets it, of submitters that have had more than their share. The machine is chosen by the request's Rank, then by whom it
// hurts: fewest of batch, then fewest of free, then the least work lost. On the machine no claim is evicted that need not be.
//
// Each eviction serves one start: the grant names its victims, and what they hold is nobody else's. A victim is chosen once, and is not placed anew
// in the plan that displaces it, so nothing cascades. Room that is being made already, on machines that claims are leaving, is waited for before more
// is made.

// Preemption is whom a plan may displace. The zero value lets higher bands displace lower ones, without a bound.
type Preemption struct {
	Bounded bool           // Cell and PerJob count
	Cell    int            // so many claims may be evicted in this plan
	PerJob  int            // and so many of one job, less Evicted
	Evicted map[string]int // by job, as in Claim.Job without the task's index: how many of it were evicted lately
	Fair    *FairShare     // nil: batch does not displace batch
}

// hunt is what a want knows of whom it could displace.
type hunt struct {
	prey   []quarry // a heap, the best first, by what it costs at least
	known  []quarry // likewise, by what it costs
	opened bool
	all    bool // all machines were looked at
	failed bool // nobody can be displaced: nor can anybody later in the plan
	awaits int  // units that wait for room that is being made
	looked int  // how many of the plan's stages were looked at for that
}

// quarry is a machine, and what it costs to make room there.
type quarry struct {
	rank    float64
	cost    cost
	at      int32
	version int32
	victims []int // of the machine's claims
}

// cost is what an eviction costs; what comes first counts most.
type cost struct {
	batch, free int
	lost        int64 // seconds of work
}

func (a cost) less(b cost) bool {
	if a.batch != b.batch {
		return a.batch < b.batch
	}
	if a.free != b.free {
		return a.free < b.free
	}
	return a.lost < b.lost
}

func (a cost) with(c *Claim, now int64) cost {
	if c.Band == roost.Free {
		a.free++
	} else {
		a.batch++
	}
	a.lost += c.lost(now)
	return a
}

// savedCost is what it costs a task to be saved and to be restored elsewhere, in seconds of work.
const savedCost = 10

// lost is how many seconds of work are lost if the claim is evicted.
func (c *Claim) lost(now int64) int64 {
	if c.Since == 0 {
		return 0
	}
	lost := max(now-max(c.Since, c.Saved), 0)
	if c.Checkpoint {
		return min(lost, savedCost)
	}
	return lost
}

// preempt displaces claims for one unit of a want that found no room, and reports whether it did.
func (p *plan) preempt(w *want) bool {
	h := &w.hunt
	if h.failed || w.Gang > 1 || w.Band == roost.Free {
		return false
	}
	for w.left-w.NoWait-h.awaits > 0 {
		if p.await(w) {
			h.awaits++
			continue
		}
		if q, ok := p.quarry(w); ok {
			p.evict(w, &q)
			return true
		}
		p.leaveAlone(w)
		return false
	}
	return false
}

// maxWeighed bounds how many machines are weighed for one unit when there is one already that will do: those that could be the best come first, so
// what the bound costs is little, and it is what makes large pools fast (Borg §3.4 stops looking in the same way).
const maxWeighed = 32

// quarry is the machine on which it hurts least to make room for a unit.
func (p *plan) quarry(w *want) (quarry, bool) {
	h := &w.hunt
	if !h.opened {
		h.opened = true
		p.track(w)
		heap.Init(&quarries{&h.prey, p})
	}
	maybe, known := &quarries{&h.prey, p}, &quarries{&h.known, p}
	for weighed := 0; ; weighed++ {
		for len(h.known) > 0 && h.known[0].version != p.versions[h.known[0].at] {
			if p.weigh(w, &h.known[0]) {
				heap.Fix(known, 0)
			} else {
				heap.Pop(known)
			}
		}
		if len(h.known) > 0 && (len(h.prey) == 0 || !p.kinder(&h.prey[0], &h.known[0]) || weighed >= maxWeighed && h.prey[0].rank <= h.known[0].rank) {
			return h.known[0], true
		}
		if len(h.prey) == 0 {
			return quarry{}, false
		}
		if q := heap.Pop(maybe).(quarry); p.weigh(w, &q) {
			heap.Push(known, q)
		}
	}
}

// track lists the machines where it may be possible to make room. A want that could not displace anybody in the last plan looks only where something
// has changed since, as it does for room (see barren.go).
func (p *plan) track(w *want) {
	b, top := w.Class.spared, p.top(w)
	if b.plan == 0 || !p.lasting(w) || w.Class.of != p.Matcher || len(w.Avoid) > 0 || p.Now.Before(b.looked) || p.Now.Sub(b.looked) >= lookAgain {
		w.hunt.all = true
		for at := range p.Machines {
			p.sight(w, at, top)
		}
		return
	}
	if b.plan == p.cycle-1 {
		for _, at := range p.fresh {
			p.sight(w, int(at), top)
		}
		return
	}
	for at, began := range p.stamp {
		if began > b.plan {
			p.sight(w, at, top)
		}
	}
}

// sight adds a machine to those where it may be possible to make room.
func (p *plan) sight(w *want, at int, top roost.Band) {
	if !p.prey[at] {
		return
	}
	m := p.Machines[at]
	least, ok := p.atLeast(w, at, top)
	if _, avoid := w.Avoid[m.Name]; !ok || avoid || !p.clear(w, at) {
		return
	}
	if rank, ok := p.query(w.Class).Match(m.row, &p.env); ok {
		w.hunt.prey = append(w.hunt.prey, quarry{rank: usable(rank), cost: least, at: int32(at)})
	}
}

// lasting reports whether it hangs on machines alone whom a want may displace: not on how submitters stand.
func (p *plan) lasting(w *want) bool { return w.Band.Prod() || p.Preemption.Fair == nil }

// leaveAlone notes that a want can displace nobody, for the next plan.
func (p *plan) leaveAlone(w *want) {
	w.hunt.failed = true
	b := &w.Class.spared
	if p.exhausted() || w.left != w.Wanted || !p.lasting(w) {
		b.plan = 0
		return
	}
	b.plan = p.cycle
	if w.hunt.all {
		b.looked = p.Now
	}
}

// top is the highest band that a want may displace.
func (p *plan) top(w *want) roost.Band {
	if w.Band.Prod() || p.Preemption.Fair != nil {
		return roost.Batch
	}
	return roost.Free
}

// clear reports whether nothing is held of a machine that a want would have to mind.
func (p *plan) clear(w *want, at int) bool {
	if !p.within(w, at) {
		return false
	}
	f := p.futures[at]
	return f == nil || !slices.ContainsFunc(f.holds, func(h hold) bool { return !h.entitled(w) })
}

// quarries is a heap.
type quarries struct {
	list *[]quarry
	*plan
}

func (q *quarries) Len() int { return len(*q.list) }

func (q *quarries) Less(i, j int) bool { return q.kinder(&(*q.list)[i], &(*q.list)[j]) }

// kinder reports whether a comes before b: by rank, by what it hurts, then by name.
func (p *plan) kinder(a, b *quarry) bool {
	switch {
	case a.rank != b.rank:
		return a.rank > b.rank
	case a.cost != b.cost:
		return a.cost.less(b.cost)
	}
	return p.Machines[a.at].Name < p.Machines[b.at].Name
}

func (q *quarries) Swap(i, j int) { (*q.list)[i], (*q.list)[j] = (*q.list)[j], (*q.list)[i] }
func (q *quarries) Push(x any)    { *q.list = append(*q.list, x.(quarry)) }
func (q *quarries) Pop() any {
	last := (*q.list)[len(*q.list)-1]
	*q.list = (*q.list)[:len(*q.list)-1]
	return last
}

// evict grants a unit of a want what its victims hold, and of what is free what that leaves wanting.
func (p *plan) evict(w *want, q *quarry) {
	at, m := int(q.at), p.Machines[q.at]
	s := p.scene(at)
	held := make([]gpu.Placement, 0, len(q.victims))
	g := Grant{Request: w.Request, Machine: m, Units: 1, Why: p.why(w, m, q.victims)}
	for _, i := range q.victims {
		c := &m.Claims[i]
		s.used[c.ID] = true
		held = append(held, c.placement(m))
		g.Victims = append(g.Victims, c.ID)
		p.spend(c)
	}
	now, later := gpu.Cover(p.roomWith(w.Class, at, held), held)
	s.gives, s.takes = append(s.gives, held...), append(s.takes, later)
	if s.leftover() {
		p.stages = append(p.stages, at)
	}
	p.spare = p.spare.Sub(p.takeNow(at, now))
	p.use(w, 1)
	w.left--
	if w.domains != nil {
		w.domains.units[p.domain(w, at)]++
	}
	p.changed(at)
	p.out.Grants = append(p.out.Grants, g)
}

// why says to those who have to go why they have to.
func (p *plan) why(w *want, m *Machine, victims []int) string {
	if c := &m.Claims[victims[len(victims)-1]]; c.Band == w.Band {
		return fmt.Sprintf("fair share: its priority is %.4g, that of %s %.4g", w.account.effective(), c.Submitter.Owner, p.account(c.Submitter).effective())
	}
	return fmt.Sprintf("%v comes before %v", w.Band, m.Claims[victims[0]].Band)
}
