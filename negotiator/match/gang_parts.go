package match

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/roost-batch/roost/negotiator/fairshare"
)

// The units of a gang may ask for different resources, such as the parts of a program on
// several machines. Then they belong to several requests with one leader: it waits, takes
// its turn and is explained for all of them.

// gangPart is the units of a gang that ask for the same.
type gangPart struct {
	*requestState
	units       int
	unplaced    int // units that still need victims while the gang preempts
	initialLeft int // unitsLeft when the gang began
}

// splitGang divides a gang into its parts.
func (p gangPlanner) splitGang(w *requestState) {
	if len(w.Parts) == 0 {
		w.parts = []gangPart{{requestState: w, units: w.Gang}}
		return
	}
	own, weight := w.Gang, 0.0
	for _, r := range w.Parts {
		own -= r.Wanted
	}
	w.parts = []gangPart{p.partRequest(w, w.Request, own)}
	for _, r := range w.Parts {
		w.parts = append(w.parts, p.partRequest(w, r, r.Wanted))
	}
	for _, c := range w.parts {
		weight += c.unitWeight * float64(c.units)
	}
	w.unitWeight = weight / float64(w.Gang)
}

func (p gangPlanner) partRequest(w *requestState, r *Request, units int) gangPart {
	sub := &requestState{Request: r, unitsLeft: units, submitter: w.submitter,
		unitWeight: fairshare.CoresWorth(r.Class.Resources, p.poolTotal), partOf: w}
	p.bindLimits(sub)
	sub.advanceReservation = w.advanceReservation
	return gangPart{requestState: sub, units: units}
}

// gangRequest returns the request of the gang that w is a part of, or w itself.
func (w *requestState) gangRequest() *requestState {
	if w.partOf != nil {
		return w.partOf
	}
	return w
}

// isMixedGang reports whether the units of a gang ask for different resources.
func (w *requestState) isMixedGang() bool { return len(w.Parts) > 0 }

// gangUnitsWithinLimits does the work of unitsWithinLimits for a whole gang: it returns
// Gang, or fewer.
func (p gangPlanner) gangUnitsWithinLimits(w *requestState) int {
	if !w.isMixedGang() || w.unusableReservation != "" {
		return p.unitsWithinLimits(w, w.Gang)
	}
	need := map[*ConcurrencyLimit]int{}
	for _, c := range w.parts {
		for _, t := range c.limits {
			if need[t.ConcurrencyLimit] += t.countForUnits(c.units); !t.past &&
				need[t.ConcurrencyLimit] > t.Total-t.Used {
				w.waitReason, w.waitReasonKind = t.reachedText(), OverLimit
				return 0
			}
		}
		for _, t := range c.softLimits {
			if need[t.ConcurrencyLimit] += t.countForUnits(c.units); !t.past && !p.overSoftLimits &&
				need[t.ConcurrencyLimit] > t.Total-t.Used {
				p.softLimited = true
				return 0
			}
		}
	}
	return p.fairShares().unitsWithinShare(w, w.Gang)
}

// placeParts does the work of placeGang for units that may ask for different resources.
// That is bin packing, for which no fast way always finds a solution. So the parts are
// tried in two orders: the heaviest first (best fit decreasing), then those with the
// fewest candidates first.
func (p gangPlanner) placeParts(w *requestState) (room int) {
	if !w.isMixedGang() {
		return p.placeGang(w)
	}
	slices.SortStableFunc(w.parts, func(a, b gangPart) int { return cmp.Compare(b.unitWeight, a.unitWeight) })
	if room = p.placeGang(w); room >= w.Gang {
		return room
	}
	slices.SortStableFunc(w.parts, func(a, b gangPart) int { return cmp.Compare(len(a.heap.list), len(b.heap.list)) })
	return max(room, p.placeGang(w))
}

// releaseParts gives back the memory of the parts of a gang that has had its turn.
func (p gangPlanner) releaseParts(w *requestState) {
	for _, c := range w.parts {
		if c.requestState != w {
			p.releaseMemory(c.requestState)
		}
	}
}

// unplacedPart returns the request to explain: the part of a gang that found no room,
// else w itself.
func (w *requestState) unplacedPart() *requestState {
	sub := w.unplacedPartOf
	if sub == nil || sub == w {
		return w
	}
	sub.waitReason, sub.waitReasonKind, sub.noFit, sub.excludedOtherwise, sub.unitsLeft = w.waitReason,
		w.waitReasonKind, w.noFit, w.excludedOtherwise, w.unitsLeft
	sub.unitsAhead, sub.higherAhead, sub.ownAhead, sub.weightAhead = w.unitsAhead, w.higherAhead, w.ownAhead,
		w.weightAhead
	sub.reservedOn, sub.start, sub.certainty, sub.unusableReservation = w.reservedOn, w.start, w.certainty,
		w.unusableReservation
	return sub
}

// infeasibleReason says, in PBS's words, that too few machines could run the units of a
// scattered or exclusive gang. It returns "" if there are enough.
func (w *requestState) infeasibleReason(all, machines int) string {
	if w.Gang < 2 || !w.Class.Scatter && !w.Class.Exclusive {
		return ""
	}
	units := 0
	for _, c := range w.gangRequest().parts {
		if c.requestState == w || c.partOf == nil {
			units = c.units
		}
	}
	switch {
	case all < w.Gang:
		return fmt.Sprintf("Can Never Run: %d tasks want a machine each, and there are %d", w.Gang, all)
	case machines >= units:
		return ""
	}
	return fmt.Sprintf("Can Never Run: %s a machine each, and %d could run one",
		pluralOf(units, "task wants", "tasks want"), machines)
}
