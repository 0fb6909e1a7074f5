package match

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/timeline"
)

// BackfillSettings configures the reservations for requests that find no room. With
// BackfillOff there are none, so large requests starve behind a stream of small ones.
// EASYBackfill reserves for the first such request of the plan, from the earliest time at
// which it fits. ConservativeBackfill reserves for each, up to a depth. Where no end of a
// task is known, a request that has waited for MaxWait gets what becomes free on the
// machines that have most of what it needs.
type BackfillSettings struct {
	Mode    BackfillMode
	Depth   int           // most units that ConservativeBackfill reserves for
	MaxWait time.Duration // wait after which a request gets what becomes free, without a known start
}

// BackfillMode is a way to reserve for requests that find no room.
type BackfillMode uint8

// The ways.
const (
	BackfillOff BackfillMode = iota
	EASYBackfill
	ConservativeBackfill
)

// StartCertainty is how certain a start time is.
type StartCertainty uint8

// From the least certain to the most certain.
const (
	UnknownStart StartCertainty = iota // no start time is known
	ByRate                             // if tasks continue to start at the recent rate
	ByPrediction                       // if the tasks before it take as long as predicted
	ByWalltime                         // at the latest at that time
)

// String returns a word for programs.
func (c StartCertainty) String() string {
	return [...]string{"unknown", "rate", "prediction", "walltime"}[c]
}

// maxReservationSearches bounds how many requests are searched a reservation for in one
// cycle.
const maxReservationSearches = 4

// reserveForUnplaced makes reservations for a request that found no room, if the mode
// allows it.
func (p backfillPlanner) reserveForUnplaced(w *requestState) {
	depth := 1
	switch p.Backfill.Mode {
	case BackfillOff:
		return
	case ConservativeBackfill:
		depth = max(p.Backfill.Depth, 1)
	}
	size := max(w.Gang, 1)
	if w.Class.AppClass == gpu.StreamClass || w.Now || p.reservedTasks >= depth ||
		p.reservationSearches >= max(maxReservationSearches, depth) {
		return
	}
	p.reservationSearches++
	for left := w.unitsLeft; left >= size && p.reservedTasks < depth && p.reserveFor(w, size); left -= size {
		p.reservedTasks++
	}
}

// reserveFor reserves room for units that are to start together, and reports whether
// there is any.
func (p backfillPlanner) reserveFor(w *requestState, size int) bool {
	if w.isMixedGang() {
		return p.reserveForParts(w)
	}
	found, known := p.cachedFitWindowFor(w, size)
	if !known {
		found = p.findFitWindow(w, size)
		if len(p.Machines) > fewNamedMachines && w.reservedOn == nil {
			p.cacheFitWindow(w, found)
		}
	}
	if found.tasksByMachine == nil {
		return false
	}
	for _, one := range found.tasksByMachine {
		p.reserveMachine(one.machine, p.reservedAmount(w, one.machine, one.units, found.start, found.until),
			reservationHolder{backfillRequest: w})
	}
	if w.reservedOn == nil {
		w.reservedOn = found.tasksByMachine
		if found.isCertain {
			if w.start, w.certainty = found.start, ByWalltime; found.isLikely {
				w.certainty = ByPrediction
			}
		}
	}
	return true
}

// fitWindow is a possible reservation: the machines, nil for none, and its start and end.
type fitWindow struct {
	tasksByMachine []tasksOnMachine
	start, until   timeline.UnixSeconds
	isCertain      bool // the units fit at the start; if false, their start is unknown
	isLikely       bool // isCertain depends on predicted run times
}

// findFitWindow searches a reservation for units that start together.
func (p backfillPlanner) findFitWindow(w *requestState, size int) (best fitWindow) {
	if w.feasible == nil {
		w.feasible = p.feasibleMachines(w)
	}
	for _, w.placementSet = range p.gangs().placementSets(w) {
		found := p.findFitWindowInSet(w, size)
		if found.tasksByMachine != nil && (best.tasksByMachine == nil ||
			found.isCertain && (!best.isCertain || found.start < best.start)) {
			best = found
		}
	}
	w.placementSet = nil
	return best
}

// findFitWindowInSet does the work of findFitWindow within one placement set.
func (p backfillPlanner) findFitWindowInSet(w *requestState, size int) fitWindow {
	r := unitsWeight(w.Class.minimumSums, w.Class.AppClass, 1)
	if start, on, ok := p.earliestStart(w, size, r); ok {
		start = max(start, p.now+1)
		predicted, corrected := p.explainer().basisOf(on, start)
		if !corrected || !p.waitedTooLong(w) {
			return fitWindow{on, start, timeline.EndTime(start, w.expectedRuntime()), true, predicted}
		}
	}
	if !p.waitedTooLong(w) {
		return fitWindow{}
	}
	return fitWindow{p.mostlyFree(w, size, r), p.now, timeline.Never, false, false}
}

// waitedTooLong reports whether a request has waited so long that it no longer depends on
// a known start time.
func (p backfillPlanner) waitedTooLong(w *requestState) bool {
	return w.Oldest != 0 && p.Now.Sub(time.Unix(0, w.Oldest)) >= p.Backfill.MaxWait
}

// fewNamedMachines is the largest pool in which every cycle searches for reservations. In
// a larger pool the result is cached for a few seconds, because looking at all machines
// would cost more than the rest of a cycle after a small change.
const fewNamedMachines = 500

// cachedFitWindow is the last result for a class, with its time.
type cachedFitWindow struct {
	fitWindow
	machines   []*Machine
	size       int
	searchedAt time.Time
}

func (p backfillPlanner) cacheFitWindow(w *requestState, found fitWindow) {
	m := &cachedFitWindow{fitWindow: found, size: max(w.Gang, 1), searchedAt: p.Now}
	for _, one := range found.tasksByMachine {
		m.machines = append(m.machines, p.Machines[one.machine])
	}
	w.Class.lastFitWindow = m
}

// cachedFitWindowFor returns a recent result if it is still valid: the machines exist and
// have room at that time.
func (p backfillPlanner) cachedFitWindowFor(w *requestState, size int) (fitWindow, bool) {
	m := w.Class.lastFitWindow
	if m == nil || w.reservedOn != nil || m.size != size || p.Now.Before(m.searchedAt) ||
		p.Now.Sub(m.searchedAt) >= noFitTTL || m.isCertain && m.start <= p.now {
		return fitWindow{}, false
	}
	found := m.fitWindow
	found.tasksByMachine = slices.Clone(m.tasksByMachine)
	for i, machine := range m.machines {
		at, ok := p.machineNumber(machine.Name)
		if !ok || m.isCertain && p.timelineFor(w, at).UnitsFrom(m.start, w.expectedRuntime(),
			unitsWeight(w.Class.minimumSums, w.Class.AppClass, 1),
			m.tasksByMachine[i].units) < m.tasksByMachine[i].units || p.closedByReservation(w, at) {
			return fitWindow{}, false
		}
		found.tasksByMachine[i].machine = at
	}
	if !m.isCertain {
		found.start = p.now
	}
	return found, true
}

// machineNumber returns the number of a machine in this cycle.
func (p backfillPlanner) machineNumber(name string) (at int, ok bool) {
	m := p.byName[name]
	if m == nil || m.drained {
		return 0, false
	}
	return int(m.number), true
}

// tasksOnMachine is how many units a machine is to run.
type tasksOnMachine struct{ machine, units int }

// feasibleMachines lists the machines that could run a unit if they were empty.
func (p backfillPlanner) feasibleMachines(w *requestState) []int {
	list := []int{}
	p.scratch.preferHits = p.compiledQuery(w.Class).Select(p.scratch.preferHits[:0], &p.env)
	for _, hit := range p.scratch.preferHits {
		m := p.machineByRow[hit.Row]
		if m.drained || !w.Class.Resources.FitsIn(m.Total) || w.Avoid[m.Name] != "" || p.closedByReservation(w,
			int(m.number)) && !p.reopensLater(w, int(m.number)) || !p.inReservation(w, int(m.number)) {
			continue
		}
		list = append(list, int(m.number))
	}
	slices.Sort(list)
	return list
}

// reopensLater reports whether every reservation that closes a machine has an end.
func (p backfillPlanner) reopensLater(w *requestState, at int) bool {
	f := p.timelines[at]
	for i, h := range f.Reservations {
		if h.Resources == wholeMachine && h.Until == timeline.Never && !f.holders[i].mayUse(w) {
			return false
		}
	}
	return true
}

// timelineFor returns a machine's timeline with the reservations that bind a request.
func (p backfillPlanner) timelineFor(w *requestState, at int) *timeline.MachineCapacity {
	f := p.timelines[at]
	switch {
	case f != nil:
	case len(p.Machines) <= fewNamedMachines:
		f = p.mutableTimeline(at) // cached, because a machine with reservations is asked again
	default:
		f = p.timelineOf(at)
	}
	if len(f.Reservations) == 0 && !w.Class.Exclusive {
		return &f.MachineCapacity // a caller must not change it
	}
	mine := &timeline.MachineCapacity{Free: p.freeForExclusive(w, at, f.Free), Releases: f.Releases}
	for i, h := range f.Reservations {
		if !f.holders[i].mayUse(w) || f.holders[i].backfillRequest == w.gangRequest() {
			mine.Reservations = append(mine.Reservations, h)
		}
	}
	return mine
}

// earliestStart returns the earliest time at which units fit together, and where.
func (p backfillPlanner) earliestStart(w *requestState, size int,
	r roost.Resources) (timeline.UnixSeconds, []tasksOnMachine, bool) {
	if size == 1 {
		return p.earliestUnitStart(w, r)
	}
	var machines []*timeline.MachineCapacity
	among := w.placementSet.machinesInSet(w.feasible)
	for _, at := range among {
		machines = append(machines, p.timelineFor(w, at))
	}
	start, on, ok := timeline.EarliestSpreadFit(machines, p.now, w.expectedRuntime(), r, size, w.unitsPerMachine(size))
	var list []tasksOnMachine
	for i, n := range on {
		if n > 0 {
			list = append(list, tasksOnMachine{among[i], n})
		}
	}
	return start, list, ok
}

// earliestUnitStart does the work of earliestStart for one unit. Most machines are
// skipped, because their first task ends too late.
func (p backfillPlanner) earliestUnitStart(w *requestState,
	r roost.Resources) (best timeline.UnixSeconds, on []tasksOnMachine, ok bool) {
	best = timeline.Never
	for _, at := range w.feasible {
		m := p.Machines[at]
		if p.timelines[at] == nil && p.versions[at] == 0 && (m.firstEnd == 0 || m.firstEnd >= best) {
			continue
		}
		view := p.timelineFor(w, at)
		start, found := view.EarliestUnit(p.now, w.expectedRuntime(), r)
		if found && m.freeByUnit {
			start, found = p.earliestSplitStart(w, at, view, start, r)
		}
		if found && start < best {
			best, on, ok = start, []tasksOnMachine{{at, 1}}, true
		}
	}
	return best, on, ok
}

// earliestSplitStart does the work of earliestStart on a machine whose sums are not
// exact. The result is not before from, the time by the sums.
func (p backfillPlanner) earliestSplitStart(w *requestState, at int, view *timeline.MachineCapacity,
	from timeline.UnixSeconds, r roost.Resources) (timeline.UnixSeconds, bool) {
	type release struct {
		at    int64
		claim *MachineClaim
	}
	var releases []release
	for i := range p.Machines[at].Claims {
		c := &p.Machines[at].Claims[i]
		if over, _ := c.expectedEnd(p.now); over > 0 && !c.PromisedToNext {
			releases = append(releases, release{over, c})
		}
	}
	slices.SortStableFunc(releases, func(a, b release) int { return cmp.Compare(a.at, b.at) })
	f := p.unitsFreeAt(at).Clone()
	for i, one := range releases {
		f.ReturnPlacement(one.claim.Placement)
		t := max(one.at, p.now+1)
		if t < from || i+1 < len(releases) && releases[i+1].at == one.at {
			continue
		}
		if view.Fits(t, w.expectedRuntime(), r) && (!w.Class.Exclusive || f.IsIdle()) &&
			f.FindPlacement(w.Class.deviceRequest(), gpu.AnyUnit, &p.lastPlacement) {
			return t, true
		}
	}
	return 0, false
}

// mostlyFree chooses the machines that have most of what the units need; nil if all
// machines together are too small.
func (p backfillPlanner) mostlyFree(w *requestState, size int, r roost.Resources) []tasksOnMachine {
	type machine struct {
		tasksOnMachine
		free float64
	}
	var all []machine
	for _, at := range w.gangRequest().placementSet.machinesInSet(w.feasible) {
		if p.closedByReservation(w, at) {
			continue
		}
		room := r.TimesIn(p.freeForExclusive(w, at, p.Machines[at].Total.Sub(p.otherReservations(w, at))))
		if room > 0 {
			room = w.unitsPerMachine(min(room, size))
			all = append(all, machine{tasksOnMachine{at, room}, smallestFraction(p.free[at], multiplied(r, room))})
		}
	}
	slices.SortStableFunc(all, func(a, b machine) int { return cmp.Compare(b.free, a.free) })
	var on []tasksOnMachine
	for _, m := range all {
		m.units = min(m.units, size)
		on = append(on, m.tasksOnMachine)
		if size -= m.units; size == 0 {
			return on
		}
	}
	return nil
}

// otherReservations sums what others have reserved of a machine without an end.
func (p backfillPlanner) otherReservations(w *requestState, at int) (sum roost.Resources) {
	if f := p.timelines[at]; f != nil {
		for i, h := range f.Reservations {
			if h.Until == timeline.Never && (!f.holders[i].mayUse(w) ||
				f.holders[i].backfillRequest == w.gangRequest()) {
				sum = sum.Add(h.Resources)
			}
		}
	}
	return sum
}

// smallestFraction returns the smallest free fraction of what is wanted, over all
// resources.
func smallestFraction(free, want roost.Resources) float64 {
	least := 1.0
	for d := range dimensions {
		if n := d.amountOf(want); n > 0 && d != gpuMemory {
			least = min(least, float64(d.amountOf(free))/float64(n))
		}
	}
	return least
}

// outlookText says what is reserved for a request, and when it starts.
func (p backfillPlanner) outlookText(w *requestState) string {
	if w.reservedOn == nil {
		return ""
	}
	names := make([]string, 0, len(w.reservedOn))
	for _, one := range w.reservedOn {
		names = append(names, p.Machines[one.machine].Name)
	}
	where := strings.Join(names, ", ")
	if len(names) > maxNamedMachines {
		where = fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamedMachines], ", "), len(names)-maxNamedMachines)
	}
	if w.start == 0 {
		return "; what becomes free on " + where + " is reserved for it"
	}
	if w.certainty == ByPrediction {
		return "; it starts on " + where + " about " + p.timeText(w.start) +
			" if the tasks there take as long as similar tasks did"
	}
	if w.start == p.now+1 {
		return "; it starts on " + where + " as soon as the tasks there have ended whose walltime is over"
	}
	return "; it starts on " + where + " at " + p.timeText(w.start) + " at the latest"
}

// maxNamedMachines bounds how many machines a sentence names.
const maxNamedMachines = 3
