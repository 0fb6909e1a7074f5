package match

import (
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// Batch requests may carry proposals: their schedd has placed them on its own copy of the
// cell state, and the plan only checks whether that is still possible (HRM §4.3.2 and
// algorithms 2 and 3; optimistic, as Omega and Borg §3.4 share a cell). A proposal
// without conflict is granted as it is, which costs a look at one machine instead of all.
// A proposal with a conflict is returned singly, and its units wait in the leader's
// queue: the same plan places them like units without a proposal.
//
// Fair share applies to proposals as to all other units. In addition, a job's proposals
// are granted only up to its portion of what is free (HRM §4.5), so that the first schedd
// does not take everything.

// SelfPlacement proposes one machine for some units of a request.
type SelfPlacement struct {
	Machine string
	Units   int
	Waiting bool // in a node queue; the machine chooses the resource unit
}

// PlacementConflict is a proposal that could not be granted.
type PlacementConflict struct {
	Request *Request
	SelfPlacement
	Why string
}

// initSelfPlacements collects the proposals of a band and each job's portion, and reports
// whether there are any. The portion is one of free GPUs where GPUs are asked for, else
// one of free cores.
func (p selfPlacementChecker) initSelfPlacements(wants []*requestState) bool {
	if !slices.ContainsFunc(wants, func(w *requestState) bool { return len(w.SelfPlacements) > 0 }) {
		return false
	}
	type pool struct {
		free  int64
		of    func(roost.Resources) int64
		wants []*requestState
	}
	pools := [...]*pool{
		{free: int64(p.poolFree.GPUs), of: func(r roost.Resources) int64 { return int64(r.GPUs) }},
		{free: int64(p.poolFree.CPU), of: func(r roost.Resources) int64 { return int64(r.CPU) }},
	}
	for _, w := range wants {
		if w.selfPlacements = w.SelfPlacements; len(w.selfPlacements) == 0 || w.Class.AppClass != gpu.BatchClass ||
			w.Gang > 1 || w.unitsLeft == 0 {
			w.selfPlacements = nil
			continue
		}
		for _, k := range pools {
			if k.of(w.Class.Resources) > 0 {
				k.wants = append(k.wants, w)
				p.proposalsFirst = true
				break
			}
		}
	}
	if !p.proposalsFirst {
		return false
	}
	for _, k := range pools {
		requested := make([]int64, len(k.wants))
		for i, w := range k.wants {
			requested[i] = k.of(w.Class.Resources) * int64(w.unitsLeft)
		}
		for i, n := range fairshare.DivideUnits(k.free, requested) {
			each := k.of(k.wants[i].Class.Resources)
			k.wants[i].grantableProposed = int((n + each - 1) / each) // rounded up to whole units
		}
	}
	return true
}

// nextSelfPlacement returns the next proposed machine of w that is still possible. units
// is how many of n units may go there.
func (p selfPlacementChecker) nextSelfPlacement(w *requestState, n int) (at, units int, ok bool) {
	for len(w.selfPlacements) > 0 {
		one := &w.selfPlacements[0]
		if one.Waiting {
			return 0, 0, false // these follow when everything that can start has been placed
		}
		at, why := p.checkSelfPlacement(w, one.Machine)
		switch {
		case why != "":
		case one.Units < 1:
			why = "it proposes nothing"
		case w.grantableProposed < 1:
			why = "beyond the job's portion of what is free"
		default:
			if _, fits := p.fitAndScore(w.Class, at); fits && p.notReserved(w, at) {
				return at, min(n, one.Units, w.grantableProposed), true
			}
			why = "taken meanwhile"
		}
		p.rejectSelfPlacement(w, why)
	}
	return 0, 0, false
}

// withinGrantable returns how many of n units w may place elsewhere than proposed while
// proposals are being checked.
func (p selfPlacementChecker) withinGrantable(w *requestState, n int) int {
	if p.proposalsFirst && len(w.SelfPlacements) > 0 {
		return min(n, max(w.grantableProposed, 0))
	}
	return n
}

// consumeSelfPlacement counts n units that were placed as w proposed.
func (w *requestState) consumeSelfPlacement(n int) {
	rest := w.selfPlacements[0]
	rest.Units -= n
	w.grantableProposed -= n
	w.selfPlacements = w.selfPlacements[1:]
	if rest.Units > 0 {
		w.selfPlacements = append([]SelfPlacement{rest}, w.selfPlacements...)
	}
}

// rejectSelfPlacement removes the next proposal of w.
func (p selfPlacementChecker) rejectSelfPlacement(w *requestState, why string) {
	p.result.Conflicts = append(p.result.Conflicts, PlacementConflict{w.Request, w.selfPlacements[0], why})
	w.selfPlacements = w.selfPlacements[1:]
}

// checkSelfPlacement finds a proposed machine, or says why it is impossible whatever is
// free of it.
func (p selfPlacementChecker) checkSelfPlacement(w *requestState, name string) (at int, why string) {
	m := p.byName[name]
	switch {
	case m == nil || m.inMatcher != p.Matcher:
		return 0, "there is no such machine"
	case m.drained:
		return 0, "it is drained"
	case !p.nodeQueues().matches(w, int(m.number)):
		return 0, "request and machine do not match"
	}
	return int(m.number), ""
}

// notReserved reports whether a machine has room for a unit of w beside its reservations
// for others.
func (p selfPlacementChecker) notReserved(w *requestState, at int) bool {
	return len(p.timelines) == 0 && w.advanceReservation == nil ||
		p.backfill().inReservation(w, at) && p.backfill().fitsBesideReservations(w, at, 1) > 0
}

// enqueueSelfPlacement puts one unit of w into the next proposed node queue, and reports
// whether there was room.
func (p selfPlacementChecker) enqueueSelfPlacement(w *requestState) bool {
	for len(w.selfPlacements) > 0 {
		one := &w.selfPlacements[0]
		at, why := p.checkSelfPlacement(w, one.Machine)
		switch {
		case why != "":
		case !one.Waiting || one.Units < 1:
			why = "taken meanwhile"
		case p.unitQueues[at] == nil || !p.nodeQueues().mayEnqueue(w, at):
			why = "nothing more may wait there"
		default:
			if unit, ok := p.unitQueues[at].QueueableUnit(w.Class.deviceRequest()); ok {
				p.nodeQueues().enqueueUnit(w, queueCandidate{machine: at, unit: unit,
					waitSeconds: p.unitQueues[at].Queue(unit).WaitSeconds})
				w.grantableProposed++ // a place in a queue takes nothing of what is free
				w.consumeSelfPlacement(1)
				return true
			}
			why = "nothing more may wait there"
		}
		p.rejectSelfPlacement(w, why)
	}
	return false
}
