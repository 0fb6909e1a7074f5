package match

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/forecast"
)

// Backfill says what is held for those that find no room. Off: nothing, so that what needs much starves behind a stream of what needs little. EASY:
// for the first of them in the order of the plan, from the earliest time on at which it fits. Conservative: for each, up to a depth. Where nobody knows
// when anything ends, a request that has waited for a while gets what falls free of the machines that have most of what it needs, as it falls free.
type Backfill struct {
	Mode     BackfillMode
	Depth    int           // Conservative: for how many units at most
	Patience time.Duration // how long a request has waited before it is given what falls free
}

// BackfillMode is a way to hold something for those that find no room.
type BackfillMode uint8

// The ways.
const (
	BackfillOff BackfillMode = iota
	EASY
	Conservative
)

// Certainty is how sure a time is at which something starts.
type Certainty uint8

// From the least sure to the surest.
const (
	Unknown      Certainty = iota // nobody knows when
	ByRate                        // if as many go on to start as have started lately
	ByPrediction                  // if those before it take as long as they are expected to
	ByWalltime                    // at the latest
)

// String is a word for programs.
func (c Certainty) String() string {
	return [...]string{"unknown", "rate", "prediction", "walltime"}[c]
}

// maxTries bounds for how many requests in one plan something is looked for that can be held.
const maxTries = 4

// blocked holds something for a want that has found no room, if it is its turn.
func (p *plan) blocked(w *want) {
	depth := 1
	switch p.Backfill.Mode {
	case BackfillOff:
		return
	case Conservative:
		depth = max(p.Backfill.Depth, 1)
	}
	size := max(w.Gang, 1)
	if w.Class.App == gpu.Stream || w.Now || p.heads >= depth || p.tries >= max(maxTries, depth) {
		return
	}
	p.tries++
	for left := w.left; left >= size && p.heads < depth && p.holdFor(w, size); left -= size {
		p.heads++
	}
}

// holdFor holds room for so many units that are to start together, and reports whether there is any.
func (p *plan) holdFor(w *want, size int) bool {
	if w.mixed() {
		return p.holdForCast(w)
	}
	found, known := p.recall(w, size)
	if !known {
		found = p.findHold(w, size)
		if len(p.Machines) > fewMachines && w.on == nil {
			p.memorise(w, found)
		}
	}
	if found.on == nil {
		return false
	}
	for _, one := range found.on {
		p.keep(one.at, p.holdOf(w, one.at, one.units, found.start, found.until), hold{head: w})
	}
	if w.on == nil {
		w.on = found.on
		if found.certain {
			if w.start, w.certainty = found.start, ByWalltime; found.likely {
				w.certainty = ByPrediction
			}
		}
	}
	return true
}

// vacancy is what can be held for some units: where, nil for nowhere, and from when until when.
type vacancy struct {
	on           []portion
	start, until forecast.Seconds
	certain      bool // they fit at the start; else nobody knows when they will
	likely       bool // they do if tasks take as long as they are expected to
}

// findHold looks for what can be held for so many units.
func (p *plan) findHold(w *want, size int) (best vacancy) {
	if w.reach == nil {
		w.reach = p.reach(w)
	}
	for _, w.fence = range p.fences(w) {
		found := p.findWithin(w, size)
		if found.on != nil && (best.on == nil || found.certain && (!best.certain || found.start < best.start)) {
			best = found
		}
	}
	w.fence = nil
	return best
}

// findWithin is findHold for one group of machines.
func (p *plan) findWithin(w *want, size int) vacancy {
	r := weight(w.Class.sums, w.Class.App, 1)
	if start, on, ok := p.earliest(w, size, r); ok {
		start = max(start, p.now+1)
		predicted, corrected := p.trust(on, start)
		if !corrected || !p.impatient(w) {
			return vacancy{on, start, forecast.End(start, w.length()), true, predicted}
		}
	}
	if !p.impatient(w) {
		return vacancy{}
	}
	return vacancy{p.nearest(w, size, r), p.now, forecast.Never, false, false}
}

// impatient reports whether a want has waited for so long that it does not wait for a time that nobody knows.
func (p *plan) impatient(w *want) bool {
	return w.Oldest != 0 && p.Now.Sub(time.Unix(0, w.Oldest)) >= p.Backfill.Patience
}

// fewMachines is in how many machines one looks for a vacancy in every plan. In a larger pool what was found is kept for a few seconds: to look at all
// machines would cost more than all else in a cycle after a small change.
const fewMachines = 500

// finding is what was found for a class, and when.
type finding struct {
	vacancy
	machines []*Machine
	size     int
	looked   time.Time
}

func (p *plan) memorise(w *want, found vacancy) {
	m := &finding{vacancy: found, size: max(w.Gang, 1), looked: p.Now}
	for _, one := range found.on {
		m.machines = append(m.machines, p.Machines[one.at])
	}
	w.Class.finding = m
}

// recall returns what was found a moment ago, if it still holds: the machines are there, and have room at that time.
func (p *plan) recall(w *want, size int) (vacancy, bool) {
	m := w.Class.finding
	if m == nil || w.on != nil || m.size != size || p.Now.Before(m.looked) || p.Now.Sub(m.looked) >= lookAgain || m.certain && m.start <= p.now {
		return vacancy{}, false
	}
	found := m.vacancy
	found.on = slices.Clone(m.on)
	for i, machine := range m.machines {
		at, ok := p.placeOf(machine.Name)
		if !ok || m.certain && p.view(w, at).Units(m.start, w.length(), weight(w.Class.sums, w.Class.App, 1), m.on[i].units) < m.on[i].units || p.shut(w, at) {
			return vacancy{}, false
		}
		found.on[i].at = at
	}
	if !m.certain {
		found.start = p.now
	}
	return found, true
}

// placeOf is the number of a machine in this plan.
func (p *plan) placeOf(name string) (at int, ok bool) {
	m := p.byName[name]
	if m == nil || m.drained {
		return 0, false
	}
	return int(m.at), true
}

// portion is how many units a machine is to run.
type portion struct{ at, units int }

// reach lists the machines that could run a unit if they were empty.
func (p *plan) reach(w *want) []int {
	list := []int{}
	p.scratch.hits = p.query(w.Class).Select(p.scratch.hits[:0], &p.env)
	for _, hit := range p.scratch.hits {
		m := p.byRow[hit.Row]
		if m.drained || !w.Class.Resources.Fits(m.Total) || w.Avoid[m.Name] != "" || p.shut(w, int(m.at)) && !p.opensLater(w, int(m.at)) || !p.within(w, int(m.at)) {
			continue
		}
		list = append(list, int(m.at))
	}
	slices.Sort(list)
	return list
}

// opensLater reports whether what shuts a machine ends.
func (p *plan) opensLater(w *want, at int) bool {
	f := p.futures[at]
	for i, h := range f.Holds {
		if h.Resources == everything && h.Until == forecast.Never && !f.holds[i].entitled(w) {
			return false
		}
	}
	return true
}

// view is a machine's future as a want sees it.
func (p *plan) view(w *want, at int) *forecast.Machine {
	f := p.futures[at]
	switch {
	case f != nil:
	case len(p.Machines) <= fewMachines:
		f = p.future(at) // kept: where something is held then, the same is asked again
	default:
		f = p.foresee(at)
	}
	if len(f.Holds) == 0 && !w.Class.Alone {
		return &f.Machine // who looks changes nothing
	}
	mine := &forecast.Machine{Free: p.seen(w, at, f.Free), Releases: f.Releases}
	for i, h := range f.Holds {
		if !f.holds[i].entitled(w) || f.holds[i].head == w.whole() {
			mine.Holds = append(mine.Holds, h)
		}
	}
	return mine
}

// earliest is when so many units fit together at the earliest, and where.
func (p *plan) earliest(w *want, size int, r roost.Resources) (forecast.Seconds, []portion, bool) {
	if size == 1 {
		return p.earliestOne(w, r)
	}
	var machines []*forecast.Machine
	among := w.fence.within(w.reach)
	for _, at := range among {
		machines = append(machines, p.view(w, at))
	}
	start, on, ok := forecast.EarliestSpread(machines, p.now, w.length(), r, size, w.here(size))
	var list []portion
	for i, n := range on {
		if n > 0 {
			list = append(list, portion{among[i], n})
		}
	}
	return start, list, ok
}

// earliestOne is earliest for one unit. Most machines need not be looked at closely: their first task ends too late.
func (p *plan) earliestOne(w *want, r roost.Resources) (best forecast.Seconds, on []portion, ok bool) {
	best = forecast.Never
	for _, at := range w.reach {
		m := p.Machines[at]
		if p.futures[at] == nil && p.versions[at] == 0 && (m.firstEnd == 0 || m.firstEnd >= best) {
			continue
		}
		view := p.view(w, at)
		start, found := view.First(p.now, w.length(), r)
		if found && m.split {
			start, found = p.earliestSplit(w, at, view, start, r)
		}
		if found && start < best {
			best, on, ok = start, []portion{{at, 1}}, true
		}
	}
	return best, on, ok
}

// earliestSplit is earliest on a machine whose sums do not say all, not before they say so.
func (p *plan) earliestSplit(w *want, at int, view *forecast.Machine, from forecast.Seconds, r roost.Resources) (forecast.Seconds, bool) {
	type release struct {
		at    int64
		claim *Claim
	}
	var releases []release
	for i := range p.Machines[at].Claims {
		c := &p.Machines[at].Claims[i]
		if over, _ := c.over(p.now); over > 0 && !c.Taken {
			releases = append(releases, release{over, c})
		}
	}
	slices.SortStableFunc(releases, func(a, b release) int { return cmp.Compare(a.at, b.at) })
	f := p.splitAt(at).Clone()
	for i, one := range releases {
		f.Give(one.claim.Placement)
		t := max(one.at, p.now+1)
		if t < from || i+1 < len(releases) && releases[i+1].at == one.at {
			continue
		}
		if view.Fits(t, w.length(), r) && (!w.Class.Alone || f.Idle()) && f.Find(w.Class.request(), gpu.Anywhere, &p.spot) {
			return t, true
		}
	}
	return 0, false
}

// nearest chooses the machines that have most of what so many units need; nil if all machines together are too small.
func (p *plan) nearest(w *want, size int, r roost.Resources) []portion {
	type machine struct {
		portion
		free float64
	}
	var all []machine
	for _, at := range w.whole().fence.within(w.reach) {
		if p.shut(w, at) {
			continue
		}
		room := r.Times(p.seen(w, at, p.Machines[at].Total.Sub(p.heldElsewhere(w, at))))
		if room > 0 {
			room = w.here(min(room, size))
			all = append(all, machine{portion{at, room}, part(p.free[at], times(r, room))})
		}
	}
	slices.SortStableFunc(all, func(a, b machine) int { return cmp.Compare(b.free, a.free) })
	var on []portion
	for _, m := range all {
		m.units = min(m.units, size)
		on = append(on, m.portion)
		if size -= m.units; size == 0 {
			return on
		}
	}
	return nil
}

// heldElsewhere is what others have held of a machine for good.
func (p *plan) heldElsewhere(w *want, at int) (sum roost.Resources) {
	if f := p.futures[at]; f != nil {
		for i, h := range f.Holds {
			if h.Until == forecast.Never && (!f.holds[i].entitled(w) || f.holds[i].head == w.whole()) {
				sum = sum.Add(h.Resources)
			}
		}
	}
	return sum
}

// part is the least part of what is wanted that is free, in any dimension.
func part(free, want roost.Resources) float64 {
	least := 1.0
	for d := range dimensions {
		if n := d.of(want); n > 0 && d != gpuMemory {
			least = min(least, float64(d.of(free))/float64(n))
		}
	}
	return least
}

// outlook says what is held for a want, and when it starts.
func (p *plan) outlook(w *want) string {
	if w.on == nil {
		return ""
	}
	names := make([]string, 0, len(w.on))
	for _, one := range w.on {
		names = append(names, p.Machines[one.at].Name)
	}
	where := strings.Join(names, ", ")
	if len(names) > maxNamed {
		where = fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
	}
	if w.start == 0 {
		return "; what falls free on " + where + " is kept for it"
	}
	if w.certainty == ByPrediction {
		return "; it starts on " + where + " about " + p.instant(w.start) + " if what runs there takes as long as tasks like it did"
	}
	if w.start == p.now+1 {
		return "; it starts on " + where + " as soon as that has ended whose time is up there"
	}
	return "; it starts on " + where + " at " + p.instant(w.start) + " at the latest"
}

// maxNamed bounds how many machines a sentence names.
const maxNamed = 3
