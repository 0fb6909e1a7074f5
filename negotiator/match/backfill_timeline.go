package match

import (
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/timeline"
)

// Of a machine a part of which is held for somebody, the plan keeps its future: who gives
// what back when, and what is held from when on. Anybody else may take of it only what is
// free beside the holds for as long as he runs. Of all other machines only the present
// counts.

// poolTimeline is what a plan knows of the future.
type poolTimeline struct {
	now                 timeline.UnixSeconds
	timelines           map[int]*machineTimeline // of the machines of which something is held, by their numbers
	reservedTasks       int                      // units that something is held for
	reservationSearches int                      // requests for which something was looked for that can be held
	gangCount           int                      // that were placed, or tried
	startMachineNumbers []int32                  // see startMachines
	undo                *gangUndo                // a gang is being placed
}

// reservedStart is what a plan knows of the future of a want.
type reservedStart struct {
	advanceReservation  *AdvanceReservation  // that it asks for
	unusableReservation string               // why it cannot start at all
	feasible            []int                // the machines that could run it, nil until that was asked
	reservedOn          []tasksOnMachine     // where something is held for it
	start               timeline.UnixSeconds // when it starts, as far as that is known
	certainty           StartCertainty
	gang                int // the number of the gang that is being placed
}

// machineTimeline is what is to come of one machine.
type machineTimeline struct {
	timeline.MachineCapacity
	holders []reservationHolder // beside Machine.Holds, by the same numbers
}

// reservationHolder is whose a hold is.
type reservationHolder struct {
	advanceReservation *AdvanceReservation // an advance reservation's
	drain              *MachineDrain       // the administrator's
	backfillRequest    *requestState       // a request's that waits for it
}

// wholeMachine is more than any machine has, in what every request wants something of.
var wholeMachine = roost.Resources{CPU: 1 << 40, Memory: 1 << 60}

// secondsCeil is a length of time in a forecast, rounded up; nothing ends that says no
// length.
func secondsCeil(d time.Duration) timeline.UnixSeconds {
	if d <= 0 {
		return timeline.Never
	}
	return int64((d + time.Second - 1) / time.Second)
}

// expectedRuntime is how long a unit of a want is taken to run: as it says, or as it is
// expected to.
func (w *requestState) expectedRuntime() timeline.UnixSeconds {
	if w.PredictedRuntime > 0 && (w.Walltime <= 0 || w.PredictedRuntime < w.Walltime) {
		return secondsCeil(w.PredictedRuntime)
	}
	return secondsCeil(w.Walltime)
}

// unitsWeight is what so many units of a class take in a forecast. Stream tasks take the
// processor time of batch tasks, and leave it to them.
func unitsWeight(r roost.Resources, class gpu.AppClass, n int) roost.Resources {
	if class == gpu.StreamClass {
		r.CPU = 0
	}
	return multiplied(r, n)
}

// mutableTimeline returns the future of a machine as this plan may change it.
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

// timelineOf says what will come back of a machine, if nobody holds it. What should be
// over already comes back in a moment.
func (p backfillPlanner) timelineOf(at int) *machineTimeline {
	f := &machineTimeline{}
	f.Releases = slices.Clone(p.Machines[at].futureReturns)
	p.fillTimeline(f, at)
	return f
}

// fillTimeline completes a future, in which the machine's own returns are noted already.
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

// reserveMachine holds a part of a machine. All who have looked at the machine look
// again.
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

// markTimelineChanged notes that there is more or less to be had on a machine than
// before.
func (p backfillPlanner) markTimelineChanged(at int) {
	p.markChanged(at)
	p.placedLog = append(p.placedLog, machineVersion{int32(at), p.versions[at]})
}

// mayUse reports whether a hold is for that request, or one that it need not mind.
func (h *reservationHolder) mayUse(w *requestState) bool {
	return h.backfillRequest != nil && h.backfillRequest == w.gangRequest() || h.advanceReservation != nil &&
		h.advanceReservation == w.advanceReservation
}

// fitsBesideReservations is how many of n units of a want a machine can take beside what
// is held of it, if there is room for them now.
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

// runtimeBesideReservations is how long a unit of a want is taken to run beside what is
// held of a machine. Where a request was told when it starts at the latest, that is as
// long as the unit may: a prediction that is too short would delay it. Elsewhere it is as
// long as it is expected to.
func (f *machineTimeline) runtimeBesideReservations(w *requestState) timeline.UnixSeconds {
	for i := range f.holders {
		if h := &f.holders[i]; h.backfillRequest != nil && h.backfillRequest.certainty == ByWalltime && !h.mayUse(w) {
			return secondsCeil(w.Walltime)
		}
	}
	return w.expectedRuntime()
}

// consumeReservation notes that n units of a want were placed on a machine: what is held
// for it is held no more.
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

// reservedFor says for whom a machine is kept on which a want has room.
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

// fullyReservedFor says for whom a whole machine is kept from a want by now, and
// SeveralReasons if it is not.
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

// reasonKind is how a hold counts among the reasons: until a drain begins the machine is
// to be used, for what ends before.
func (h *reservationHolder) reasonKind(later bool) ReasonKind {
	switch {
	case h.drain != nil && !later:
		return Drained
	case h.drain != nil, h.advanceReservation != nil:
		return Reserved
	}
	return ReservedForEarlier
}

// holderText says whose a hold is, and from when on.
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
	return "held for a request of " + of.backfillRequest.Submitter.Owner + " that comes before it, as it falls free"
}

// timeText writes a time for people.
func (p backfillPlanner) timeText(t timeline.UnixSeconds) string {
	return time.Unix(t, 0).In(p.Now.Location()).Format("2006-01-02 15:04:05 MST")
}

// cloneTimeline is a copy that shares nothing that changes.
func (f *machineTimeline) cloneTimeline() *machineTimeline {
	g := *f
	g.Releases, g.Reservations, g.holders = slices.Clone(f.Releases), slices.Clone(f.Reservations),
		slices.Clone(f.holders)
	return &g
}
