package match

import (
	"slices"

	"github.com/roost-batch/roost/negotiator/timeline"
)

// For a gang whose units ask for different resources, the earliest start is searched part
// by part. Each part finds the earliest time at which it fits beside the parts before it;
// if that is later than theirs, all begin again from there. The result is a time at which
// all parts fit. It is not always the earliest, because other machines for the earlier
// parts might have left room sooner.

// maxGangRestarts bounds how often the search begins again.
const maxGangRestarts = 32

// partRoom is room for units of a part, and the reservation for them.
type partRoom struct {
	tasksOnMachine
	reservation timeline.Reservation
}

// reserveForParts does the work of reserveFor for a gang whose units ask for different
// resources.
func (p backfillPlanner) reserveForParts(w *requestState) bool {
	for i := range w.parts {
		if c := w.parts[i].requestState; c.feasible == nil {
			c.feasible = p.feasibleMachines(c)
		}
	}
	var best []partRoom
	var start timeline.UnixSeconds
	for _, w.placementSet = range p.gangs().placementSets(w) {
		if found, t := p.earliestForParts(w); found != nil && (best == nil || t < start) {
			best, start = found, t
		}
	}
	if best != nil {
		w.placementSet = nil
		p.reserveAll(w, best, max(start, p.now+1))
		return true
	}
	held := false
	if p.waitedTooLong(w) {
		for _, w.placementSet = range p.gangs().placementSets(w) {
			if held = p.reserveMostlyFree(w); held {
				break
			}
		}
	}
	w.placementSet = nil
	return held
}

// earliestForParts returns room for the whole gang and its start; nil if no start is
// known.
func (p backfillPlanner) earliestForParts(w *requestState) (found []partRoom, t timeline.UnixSeconds) {
	t = p.now
	for range maxGangRestarts {
		found, later, ok := p.roomForAllFrom(w, t)
		if !ok || later == t {
			return found, t
		}
		t = later
	}
	return nil, 0
}

// roomForAllFrom searches room for the whole gang from t on. It returns the room, or the
// later time until which the first part without room must wait.
func (p backfillPlanner) roomForAllFrom(w *requestState,
	t timeline.UnixSeconds) (found []partRoom, later timeline.UnixSeconds, ok bool) {
	for _, c := range w.parts {
		r := unitsWeight(c.Class.minimumSums, c.Class.AppClass, 1)
		var machines []*timeline.MachineCapacity
		among := w.placementSet.machinesInSet(c.feasible)
		for _, at := range among {
			view := *p.timelineFor(c.requestState, at)
			view.Reservations = slices.Clone(view.Reservations)
			used := false
			for _, one := range found {
				if one.machine == at {
					view.Reservations, used = append(view.Reservations, one.reservation), true
				}
			}
			if used && c.Class.Scatter {
				view.Reservations = append(view.Reservations,
					timeline.Reservation{From: 0, Until: timeline.Never, Resources: wholeMachine})
			}
			machines = append(machines, &view)
		}
		start, on, fits := timeline.EarliestSpreadFit(machines, t, c.expectedRuntime(), r, c.units,
			c.unitsPerMachine(c.units))
		if !fits || start > t {
			return nil, start, fits
		}
		for i, n := range on {
			if n > 0 {
				found = append(found, partRoom{tasksOnMachine{among[i], n},
					p.reservedAmount(c.requestState, among[i], n, t, timeline.EndTime(t, c.expectedRuntime()))})
			}
		}
	}
	return found, t, true
}

// reserveAll makes the reservations that were found.
func (p backfillPlanner) reserveAll(w *requestState, found []partRoom, start timeline.UnixSeconds) {
	var on []tasksOnMachine
	for _, one := range found {
		one.reservation.From = start
		p.reserveMachine(one.machine, one.reservation, reservationHolder{backfillRequest: w})
		on = append(on, one.tasksOnMachine)
	}
	if w.reservedOn == nil {
		w.reservedOn, w.start, w.certainty = on, start, ByWalltime
		if predicted, _ := p.explainer().basisOf(on, start); predicted {
			w.certainty = ByPrediction
		}
	}
}

// reserveMostlyFree reserves for each part what becomes free on the machines that have
// most of what it needs. It reserves for all parts or for none.
func (p backfillPlanner) reserveMostlyFree(w *requestState) bool {
	var on []tasksOnMachine
	for _, c := range w.parts {
		r := unitsWeight(c.Class.minimumSums, c.Class.AppClass, 1)
		some := p.mostlyFree(c.requestState, c.units, r)
		for _, one := range some {
			p.reserveMachine(one.machine, p.reservedAmount(c.requestState, one.machine, one.units, p.now,
				timeline.Never), reservationHolder{backfillRequest: w})
		}
		if on = append(on, some...); some == nil {
			for _, one := range on {
				f := p.timelines[one.machine]
				f.Reservations, f.holders = f.Reservations[:len(f.Reservations)-1], f.holders[:len(f.holders)-1]
				p.markTimelineChanged(one.machine)
			}
			return false
		}
	}
	if w.reservedOn == nil {
		w.reservedOn = on
	}
	return true
}
