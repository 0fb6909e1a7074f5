package match

import (
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/timeline"
)

// For a machine with reservations the cycle holds a timeline: when claims return what
// they hold, and what is reserved from when on. Other requests may take only what stays
// free beside the reservations for as long as they run. For all other machines only what
// is free now counts.

// poolTimeline is what a cycle knows of the future.
type poolTimeline struct {
	now                 timeline.UnixSeconds
	timelines           map[int]*machineTimeline // by number: the machines with reservations
	reservedTasks       int                      // units with a reservation
	reservationSearches int                      // requests for which a reservation was searched
	gangCount           int                      // gangs that were placed or tried
	startMachineNumbers []int32                  // see startMachines
	undo                *gangUndo                // state before the gang that is being placed; nil: none is
}

// reservedStart is what a cycle knows of the future of a request.
type reservedStart struct {
	advanceReservation  *AdvanceReservation  // the reservation that it names
	unusableReservation string               // why it cannot use its reservation now; empty if it can
	feasible            []int                // machines that could run it; nil until first needed
	reservedOn          []tasksOnMachine     // its backfill reservation; nil: none
	start               timeline.UnixSeconds // unix seconds: when it starts; 0: unknown
	certainty           StartCertainty
	gang                int // number of the gang that is being placed
}

// machineTimeline is the expected future of one machine.
type machineTimeline struct {
	timeline.MachineCapacity
	holders []reservationHolder // parallel to MachineCapacity.Reservations
}

// reservationHolder is the owner of a reservation; one field is not nil.
type reservationHolder struct {
	advanceReservation *AdvanceReservation // an advance reservation
	drain              *MachineDrain       // a drain
	backfillRequest    *requestState       // a waiting request with a backfill reservation
}

// wholeMachine is more than any machine has, of resources that every request wants.
var wholeMachine = roost.Resources{CPU: 1 << 40, Memory: 1 << 60}

// secondsCeil returns a duration in seconds, rounded up; 0 or less means that it never
// ends.
func secondsCeil(d time.Duration) timeline.UnixSeconds {
	if d <= 0 {
		return timeline.Never
	}
	return int64((d + time.Second - 1) / time.Second)
}

// expectedRuntime returns how long a unit is expected to run, in seconds. That is its
// prediction if shorter than its walltime, else its walltime.
func (w *requestState) expectedRuntime() timeline.UnixSeconds {
	if w.PredictedRuntime > 0 && (w.Walltime <= 0 || w.PredictedRuntime < w.Walltime) {
		return secondsCeil(w.PredictedRuntime)
	}
	return secondsCeil(w.Walltime)
}

// unitsWeight returns what n units of a class take in a timeline. Stream tasks share the
// CPU of batch tasks, so theirs does not count.
func unitsWeight(r roost.Resources, class gpu.AppClass, n int) roost.Resources {
	if class == gpu.StreamClass {
		r.CPU = 0
	}
	return multiplied(r, n)
}

// mutableTimeline returns the timeline of a machine, which this cycle may change.
func (p backfillPlanner) mutableTimeline(at int) *machineTimeline {
	if f := p.timelines[at]; f != nil {
		return f
	}
	if p.timelines == nil {
		p.timelines = map[int]*machineTimeline{}
	}
	f := p.scratch.newTimeline(p.Machines[at].futureReturns)
	p.fillTimeline(f, at)
	p.timelines[at] = f
	return f
}

// timelineOf computes the timeline of a machine without reservations. What should have
// ended already ends in a second.
func (p backfillPlanner) timelineOf(at int) *machineTimeline {
	f := &machineTimeline{}
	f.Releases = slices.Clone(p.Machines[at].futureReturns)
	p.fillTimeline(f, at)
	return f
}

// fillTimeline completes a timeline that has the machine's futureReturns already.
func (p backfillPlanner) fillTimeline(f *machineTimeline, at int) {
	m := p.Machines[at]
	f.Free = p.free[at]
	for i := 0; i < len(f.Releases) && f.Releases[i].At <= p.now; i++ {
		f.Releases[i].At = p.now + 1
	}
	release := func(ends timeline.UnixSeconds, r roost.Resources, class gpu.AppClass, n int) {
		if ends > 0 {
			f.AddRelease(max(ends, p.now+1), unitsWeight(r, class, n))
		}
	}
	for i := range m.Claims {
		if c := &m.Claims[i]; !c.PromisedToNext {
			at, _ := c.expectedEnd(p.now)
			release(at, c.Resources, c.AppClass(), 1)
		}
	}
	for _, one := range p.Pending[m.Name] {
		if !one.Waiting {
			release(one.WalltimeEnd, one.Resources, one.Class, 1)
		}
	}
	for _, g := range p.result.Grants {
		if g.Machine == m && !g.Waiting {
			c := g.Request.Class
			release(timeline.EndTime(p.now, (&requestState{Request: g.Request}).expectedRuntime()), p.unitUsage(c, at),
				c.AppClass, g.Units)
		}
	}
}

// reserveMachine reserves a part of a machine. All heaps that contain the machine look at
// it again.
func (p backfillPlanner) reserveMachine(at int, h timeline.Reservation, of reservationHolder) {
	f := p.mutableTimeline(at)
	f.Reservations, f.holders = append(f.Reservations, h), append(f.holders, of)
	if of.backfillRequest != nil {
		p.result.BackfillReservations = append(p.result.BackfillReservations,
			BackfillReservation{Request: of.backfillRequest.gangRequest().Request, Machine: p.Machines[at],
				From: h.From})
	}
	p.markTimelineChanged(at)
}

// markTimelineChanged records that a machine has more or less to give than before.
func (p backfillPlanner) markTimelineChanged(at int) {
	p.markChanged(at)
	p.placedLog = append(p.placedLog, machineVersion{int32(at), p.versions[at]})
}

// mayUse reports whether a reservation does not bind a request, because it is the
// request's own.
func (h *reservationHolder) mayUse(w *requestState) bool {
	return h.backfillRequest != nil && h.backfillRequest == w.gangRequest() || h.advanceReservation != nil &&
		h.advanceReservation == w.advanceReservation
}

// fitsBesideReservations returns how many of n units a machine can take beside its
// reservations. The caller knows that there is room for them now.
func (p backfillPlanner) fitsBesideReservations(w *requestState, at, n int) int {
	f := p.timelines[at]
	if f == nil {
		return n
	}
	others := 0
	for i := range f.holders {
		others += boolToInt(!f.holders[i].mayUse(w))
	}
	if others == 0 {
		return n
	}
	mine := timeline.MachineCapacity{Free: p.freeForExclusive(w, at, f.Free), Releases: f.Releases,
		Reservations: f.Reservations}
	if others < len(f.holders) {
		mine.Reservations = nil
		for i, h := range f.Reservations {
			if !f.holders[i].mayUse(w) {
				mine.Reservations = append(mine.Reservations, h)
			}
		}
	}
	return mine.UnitsFrom(p.now, f.runtimeBesideReservations(w), unitsWeight(w.Class.Resources, w.Class.AppClass, 1), n)
}

// runtimeBesideReservations returns how long a unit is assumed to run beside the
// reservations of a machine. If one of them promises a latest start, that is the unit's
// walltime, because a prediction that is too short would delay the start. Otherwise it is
// the expected run time.
func (f *machineTimeline) runtimeBesideReservations(w *requestState) timeline.UnixSeconds {
	for i := range f.holders {
		if h := &f.holders[i]; h.backfillRequest != nil && h.backfillRequest.certainty == ByWalltime && !h.mayUse(w) {
			return secondsCeil(w.Walltime)
		}
	}
	return w.expectedRuntime()
}

// consumeReservation records that n units of a request were placed on a machine, and
// reduces its reservations there.
func (p backfillPlanner) consumeReservation(w *requestState, at, n int) {
	f := p.timelines[at]
	if f == nil {
		return
	}
	r := unitsWeight(p.unitUsage(w.Class, at), w.Class.AppClass, n)
	f.AddStart(p.now, w.expectedRuntime(), r)
	for i := range f.Reservations {
		if h := &f.Reservations[i]; f.holders[i].mayUse(w) && h.Resources != wholeMachine {
			h.Resources = maxResources(h.Resources.Sub(r), roost.Resources{})
		}
	}
}

// reservedFor says who holds the reservation that excludes a request from a machine with
// room.
func (p backfillPlanner) reservedFor(w *requestState, at int) (ReasonKind, string) {
	f := p.timelines[at]
	for i, h := range f.Reservations {
		if of := &f.holders[i]; !of.mayUse(w) {
			exclusive := timeline.MachineCapacity{Free: p.freeForExclusive(w, at, f.Free), Releases: f.Releases,
				Reservations: []timeline.Reservation{h}}
			if exclusive.UnitsFrom(p.now, f.runtimeBesideReservations(w),
				unitsWeight(w.Class.Resources, w.Class.AppClass, 1), 1) == 0 {
				return of.reasonKind(h.From > p.now), p.holderText(h, of)
			}
		}
	}
	return ReservedForEarlier, "held for others"
}

// fullyReservedFor says who has reserved the whole machine by now. The kind is
// SeveralReasons if no one has.
func (p backfillPlanner) fullyReservedFor(w *requestState, at int) (ReasonKind, string) {
	if f := p.timelines[at]; f != nil {
		for i, h := range f.Reservations {
			if of := &f.holders[i]; h.Resources == wholeMachine && h.From <= p.now && !of.mayUse(w) {
				return of.reasonKind(false), p.holderText(h, of)
			}
		}
	}
	return SeveralReasons, ""
}

// reasonKind returns the kind of reason that a reservation is. Until a drain begins it
// counts as a reservation, because the machine still accepts what ends before.
func (h *reservationHolder) reasonKind(later bool) ReasonKind {
	switch {
	case h.drain != nil && !later:
		return Drained
	case h.drain != nil, h.advanceReservation != nil:
		return Reserved
	}
	return ReservedForEarlier
}

// holderText says who holds a reservation, and from when on.
func (p backfillPlanner) holderText(h timeline.Reservation, of *reservationHolder) string {
	switch {
	case of.drain != nil && h.From > p.now:
		return strings.TrimSuffix("to be drained from "+p.timeText(h.From)+", before it would end: "+of.drain.Reason,
			": ")
	case of.drain != nil:
		return strings.TrimSuffix("drained: "+of.drain.Reason, ": ")
	case of.advanceReservation != nil && h.From > p.now:
		return "reserved as " + of.advanceReservation.Name + " from " + p.timeText(h.From) + ", before it would end"
	case of.advanceReservation != nil:
		return "reserved as " + of.advanceReservation.Name + " until " + p.timeText(h.Until)
	case h.From > p.now:
		when := "at " + p.timeText(h.From) + " at the latest"
		if of.backfillRequest.certainty == ByPrediction {
			when = "about " + p.timeText(h.From)
		}
		return "held for a request of " + of.backfillRequest.Submitter.Owner +
			" that comes before it and starts " + when
	}
	return "held for a request of " + of.backfillRequest.Submitter.Owner + " that comes before it, as it becomes free"
}

// timeText formats a time for messages.
func (p backfillPlanner) timeText(t timeline.UnixSeconds) string {
	return time.Unix(t, 0).In(p.Now.Location()).Format("2006-01-02 15:04:05 MST")
}

// cloneTimeline returns a deep copy.
func (f *machineTimeline) cloneTimeline() *machineTimeline {
	g := *f
	g.Releases, g.Reservations, g.holders = slices.Clone(f.Releases), slices.Clone(f.Reservations),
		slices.Clone(f.holders)
	return &g
}
