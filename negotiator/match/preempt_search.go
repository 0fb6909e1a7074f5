package match

import (
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// preemptionSearch holds one request's state while it looks for claims to preempt.
type preemptionSearch struct {
	unevaluated     preemptionCandidateHeap // machines ordered by a lower bound of their cost
	evaluated       preemptionCandidateHeap // machines ordered by their exact cost
	cache           *preemptionCache
	started         bool
	sawAllMachines  bool // all machines were looked at, not only the changed ones
	failed          bool // no claim can be preempted, now or later in the cycle
	byPriority      bool // priority may let it preempt what is of its own submitter
	awaitingVictims int  // units that wait for room that is being made
	nextVacating    int  // index in vacatingMachines of the next machine to try
}

// preemptionShape is what units have in common that need the same victims on a machine.
type preemptionShape struct {
	resources         roost.Resources
	app               gpu.AppClass
	highestVictimBand roost.PriorityBand // they may preempt claims up to this band
}

// preemptionCache holds the costs of room for units of one shape, for all requests of
// that shape. Within a cycle free resources only shrink and budgets are only spent, so a
// stale cost is still a lower bound.
type preemptionCache struct {
	machines    int
	sparseCosts map[int32]*evictionCost // by machine, up to sparseLimit machines
	costs       []evictionCost          // by machine, once there are more
	victims     []int32
}

// sparseLimit is how many machines a cache holds in a map. After a small change no more
// are looked at, however large the cell is.
const sparseLimit = 64

// costOf returns the cached cost of one machine.
func (t *preemptionCache) costOf(at int) *evictionCost {
	if t.costs != nil {
		return &t.costs[at]
	}
	if s := t.sparseCosts[int32(at)]; s != nil {
		return s
	}
	if len(t.sparseCosts) < sparseLimit {
		s := &evictionCost{}
		t.sparseCosts[int32(at)] = s
		return s
	}
	t.costs = make([]evictionCost, t.machines)
	for i, s := range t.sparseCosts {
		t.costs[i] = *s
	}
	t.sparseCosts = nil
	return &t.costs[at]
}

// evictionCost is the cost of making room on one machine.
type evictionCost struct {
	cost                   victimCost
	firstVictim, endVictim int32 // the victims are preemptionCache.victims[firstVictim:endVictim]
	version                int32 // of the machine when the cost was computed
	state                  evictionCostState
}

type evictionCostState uint8

const (
	notEvaluated evictionCostState = iota
	infeasible                     // no room can be made
	lowerBound                     // cost is a lower bound
	exact                          // cost is exact
)

// maxCachedShapes bounds the cached shapes: each takes some 40 bytes for each machine.
const maxCachedShapes = 32

// preemptionCacheFor returns the cache for a request. It is not shared where fair share
// or priority decides, because victims then depend on the submitter, nor for gangs,
// because their choices may be undone.
func (p preemptionPlanner) preemptionCacheFor(w *requestState) *preemptionCache {
	s, shared := preemptionShape{w.Class.Resources, w.Class.AppClass, p.highestPreemptible(w)}, p.cacheable(w) &&
		w.Gang <= 1
	if t := p.preemptionCaches[s]; t != nil && shared {
		return t
	}
	t := &preemptionCache{machines: len(p.Machines), sparseCosts: map[int32]*evictionCost{}}
	if shared {
		if p.preemptionCaches == nil || len(p.preemptionCaches) >= maxCachedShapes {
			p.preemptionCaches = map[preemptionShape]*preemptionCache{}
		}
		p.preemptionCaches[s] = t
	}
	return t
}

// maxEvaluated bounds how many machines are evaluated for one unit once one has been
// found. The most promising come first, so the bound costs little, and it makes large
// pools fast (Borg §3.4 stops in the same way).
const maxEvaluated = 32

// selectPreemption returns the machine with the cheapest victims for a unit, and those
// victims; nil if there are none.
func (p preemptionPlanner) selectPreemption(w *requestState) (at int, victims []int32) {
	h := &w.preemption
	if !h.started {
		h.started, h.cache = true, p.preemptionCacheFor(w)
		p.collectPreemptionCandidates(w)
		h.unevaluated.heapify()
		h.evaluated.heapify()
	}
	for tried := 0; ; tried++ {
		p.refreshBest(w)
		if len(h.evaluated) > 0 && (len(h.unevaluated) == 0 || !h.unevaluated[0].before(&h.evaluated[0]) ||
			tried >= maxEvaluated && h.unevaluated[0].rank <= h.evaluated[0].rank) {
			s := h.cache.costOf(int(h.evaluated[0].machine))
			return int(h.evaluated[0].machine), h.cache.victims[s.firstVictim:s.endVictim]
		}
		if len(h.unevaluated) == 0 {
			return 0, nil
		}
		q := h.unevaluated[0]
		h.unevaluated.pop()
		if s := p.evaluate(w, int(q.machine)); s != nil {
			q.cost = s.cost
			h.evaluated.push(q)
		}
	}
}

// refreshBest updates the best evaluated machine until its cost is current.
func (p preemptionPlanner) refreshBest(w *requestState) {
	known := &w.preemption.evaluated
	for len(*known) > 0 {
		first := &(*known)[0]
		switch s := p.evaluate(w, int(first.machine)); {
		case s == nil:
			known.pop()
		case s.cost != first.cost:
			first.cost = s.cost
			known.siftDown(0)
		default:
			return
		}
	}
}

// evaluate returns the current cost of making room on a machine; nil if that is
// impossible.
func (p preemptionPlanner) evaluate(w *requestState, at int) *evictionCost {
	t := w.preemption.cache
	s := t.costOf(at)
	if s.state == infeasible || p.gangs().hasGangUnit(w, at) {
		return nil
	}
	if s.state == exact && s.version == p.versions[at] &&
		p.withinBudget(p.Machines[at], t.victims[s.firstVictim:s.endVictim]) &&
		p.movesFit(w, at, t.victims[s.firstVictim:s.endVictim]) {
		return s
	}
	if s.state, s.version = infeasible, p.versions[at]; !p.selectVictims(w, at) {
		return nil
	}
	s.state, s.cost, s.firstVictim = exact, p.victimSearch.bestCost, int32(len(t.victims))
	t.victims = p.victimSearch.appendChosen(t.victims)
	s.endVictim = int32(len(t.victims))
	if !p.withinBudget(p.Machines[at], t.victims[s.firstVictim:]) || !p.movesFit(w, at, t.victims[s.firstVictim:]) {
		s.state = infeasible
		return nil
	}
	return s
}

// collectPreemptionCandidates lists the machines where room might be made. A request that
// could preempt nothing in the last plan looks only at machines that have changed since,
// as in place_no_fit_cache.go.
func (p preemptionPlanner) collectPreemptionCandidates(w *requestState) {
	b, top := w.Class.noVictims, p.highestPreemptible(w)
	if b.cycle == 0 || w.Gang > 1 || !p.cacheable(w) || w.Class.compiledFor != p.Matcher || len(w.Avoid) > 0 ||
		p.Now.Before(b.checkedAll) || p.Now.Sub(b.checkedAll) >= noFitTTL {
		w.preemption.sawAllMachines = true
		for at := range p.Machines {
			p.addPreemptionCandidate(w, at, top)
		}
		return
	}
	if b.cycle == p.cycleNumber-1 {
		for _, at := range p.changedMachines {
			p.addPreemptionCandidate(w, int(at), top)
		}
		return
	}
	for at, began := range p.resetCycle {
		if began > b.cycle {
			p.addPreemptionCandidate(w, at, top)
		}
	}
}

// addPreemptionCandidate adds a machine to the candidates if room might be made there.
func (p preemptionPlanner) addPreemptionCandidate(w *requestState, at int, top roost.PriorityBand) {
	if !p.hasPreemptible[at] {
		return
	}
	if top == roost.BatchBand && !w.Band.IsProd() && !p.batchMayPreemptBatch(p.Machines[at]) && !p.usesPriority(w) {
		top = roost.FreeBand
	}
	s := w.preemption.cache.costOf(at)
	if s.state == notEvaluated {
		s.state = infeasible
		if least, ok := p.lowerBoundCost(w, at, top); ok {
			s.state, s.cost = lowerBound, least
		}
	}
	m := p.Machines[at]
	if s.state == infeasible || w.Avoid[m.Name] != "" || !p.unreserved(w, at) || p.portConflict(w.Class, at) != 0 {
		return
	}
	if rank, ok := p.compiledQuery(w.Class).Match(m.row, &p.env); ok {
		q := preemptionCandidate{rank: rankOrZero(rank), cost: s.cost, machine: int32(at)}
		if s.state == exact {
			w.preemption.evaluated = append(w.preemption.evaluated, q)
		} else {
			w.preemption.unevaluated = append(w.preemption.unevaluated, q)
		}
	}
}

// lowerBoundCost returns a lower bound of the cost of room on a machine. It is not ok if
// all preemptible claims together are not enough.
func (p preemptionPlanner) lowerBoundCost(w *requestState, at int, top roost.PriorityBand) (least victimCost, ok bool) {
	m, r, app := p.Machines[at], w.Class.Resources, w.Class.AppClass
	cpu, memory := p.totalFree(app, at)
	for band := roost.FreeBand; band <= top; band++ {
		l := &m.preemptible[band]
		if l.claims == 0 || r.CPU > cpu+l.cpu[app] || r.Memory > memory+l.memory {
			continue
		}
		if band == roost.BatchBand {
			least.batchTasks = 1
			least.lostWork = p.lowerBoundLostWork(m, band, 1)
			return least, true
		}
		least.freeTasks = max(1, stepsNeeded(r.CPU-cpu, l.largestCPU[app]),
			stepsNeeded(r.Memory-memory, l.largestMemory))
		least.lostWork = p.lowerBoundLostWork(m, band, least.freeTasks)
		return least, true
	}
	return victimCost{}, false
}

// lowerBoundLostWork returns the least work lost if n claims of a band are evicted.
func (p preemptionPlanner) lowerBoundLostWork(m *Machine, band roost.PriorityBand, n int) (sum int64) {
	if n > 1 {
		p.lostWorkBuffer = p.lostWorkBuffer[:0]
		for i := range m.Claims {
			if c := &m.Claims[i]; c.Band == band && !c.Vacating {
				p.lostWorkBuffer = append(p.lostWorkBuffer, c.lostWork(p.now))
			}
		}
		slices.Sort(p.lostWorkBuffer)
		for _, lost := range p.lostWorkBuffer[:min(n, len(p.lostWorkBuffer))] {
			sum += lost
		}
		return sum
	}
	least := int64(1) << 62
	for i := range m.Claims {
		if c := &m.Claims[i]; c.Band == band && !c.Vacating {
			least = min(least, c.lostWork(p.now))
		}
	}
	return least
}

// cacheable reports whether a request's victims depend on machines alone. They do not if
// submitters' or tasks' priorities or machines' Rank matter.
func (p preemptionPlanner) cacheable(w *requestState) bool {
	return w.Band.IsProd() || !p.batchMayPreemptBatch(nil) && !p.usesPriority(w)
}

// storeNoVictims records for the next cycle that a request can preempt no claim.
func (p preemptionPlanner) storeNoVictims(w *requestState) {
	w.preemption.failed = true
	w.preemption.release()
	b := &w.Class.noVictims
	if p.cycleBudgetUsed() || w.unitsLeft != w.Wanted || !p.cacheable(w) {
		b.cycle = 0
		return
	}
	b.cycle = p.cycleNumber
	if w.preemption.sawAllMachines {
		b.checkedAll = p.Now
	}
}

// release gives back the memory of a finished search.
func (h *preemptionSearch) release() {
	h.unevaluated, h.evaluated, h.cache, h.started = nil, nil, nil, false
}

// highestPreemptible returns the highest band that a request may preempt.
func (p preemptionPlanner) highestPreemptible(w *requestState) roost.PriorityBand {
	if w.Band == roost.BatchBand && p.usesPriority(w) {
		return roost.BatchBand
	}
	return p.highestVictimBand(w.Band)
}

// unreserved reports whether no reservation for others excludes a request from a machine.
func (p preemptionPlanner) unreserved(w *requestState, at int) bool {
	if !p.backfill().inReservation(w, at) {
		return false
	}
	f := p.timelines[at]
	return f == nil || !slices.ContainsFunc(f.holders, func(h reservationHolder) bool { return !h.mayUse(w) })
}

// preemptionCandidate is a machine with the cost of making room there.
type preemptionCandidate struct {
	rank    float64
	cost    victimCost
	machine int32
}

// before orders candidates by rank, then by cost, then by machine name.
func (a *preemptionCandidate) before(b *preemptionCandidate) bool {
	switch {
	case a.rank != b.rank:
		return a.rank > b.rank
	case a.cost != b.cost:
		return a.cost.less(b.cost)
	}
	return a.machine < b.machine
}

// preemptionCandidateHeap is a heap of machines, the best first.
type preemptionCandidateHeap []preemptionCandidate

func (q preemptionCandidateHeap) heapify() {
	for i := len(q)/2 - 1; i >= 0; i-- {
		q.siftDown(i)
	}
}

func (q *preemptionCandidateHeap) push(one preemptionCandidate) {
	*q = append(*q, one)
	list := *q
	for i := len(list) - 1; i > 0; {
		parent := (i - 1) / 2
		if !list[i].before(&list[parent]) {
			return
		}
		list[i], list[parent] = list[parent], list[i]
		i = parent
	}
}

func (q *preemptionCandidateHeap) pop() {
	last := len(*q) - 1
	(*q)[0] = (*q)[last]
	*q = (*q)[:last]
	q.siftDown(0)
}

// siftDown moves the candidate at i down to its place in the heap.
func (q preemptionCandidateHeap) siftDown(i int) {
	for {
		least := 2*i + 1
		if least >= len(q) {
			return
		}
		if right := least + 1; right < len(q) && q[right].before(&q[least]) {
			least = right
		}
		if !q[least].before(&q[i]) {
			return
		}
		q[i], q[least] = q[least], q[i]
		i = least
	}
}
