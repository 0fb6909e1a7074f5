package match

import "github.com/roost-batch/roost"

// A gang that finds no room may preempt lower bands as single units do, but only if the
// whole gang can start then. Its units first take what is free; for each of the rest the
// cheapest victims are chosen. If that is not enough, no claim is evicted. The naive way,
// to make room unit by unit, would stop the work of many users for a gang that may never
// be complete.
//
// A gang waits for room that is being made already if that is enough together with what
// is free. If it is not enough, that room is of no use to the gang now, because all its
// claims must exist at once.

// preemptForGang evicts claims for one gang of a request, and reports whether the whole
// gang has room then.
func (p preemptionPlanner) preemptForGang(w *requestState) bool {
	b := &w.Class.noVictims
	if w.Band == roost.FreeBand || w.Class.Exclusive || w.Class.PlacementSetAttr != "" || p.cycleBudgetUsed() ||
		p.failedRecently(w) || !p.gangMayPreempt(w) {
		return false
	}
	p.listVacating()
	p.gangs().beginGang(w)
	for i := range w.parts {
		c := &w.parts[i]
		for c.unplaced = c.units; c.unplaced > 0; {
			at, ok := p.bestMachine(c.requestState)
			if !ok {
				break
			}
			p.undo.saveMachine(p.negotiationCycle, at)
			c.unplaced -= p.placeOnMachine(c.requestState, at, c.unplaced)
		}
	}
	if p.gangFitsAfterVacates(w) {
		p.gangs().rollBackGang(w)
		w.preemption.awaitingVictims = w.Gang
		return false
	}
	for _, c := range w.parts {
		for ; c.unplaced > 0; c.unplaced-- {
			at, victims := 0, []int32(nil)
			if !p.cycleBudgetUsed() {
				at, victims = p.selectPreemption(c.requestState)
			}
			if victims == nil {
				p.gangs().rollBackGang(w)
				b.cycle, b.checkedAll = p.cycleNumber, p.Now
				return false
			}
			p.undo.saveMachine(p.negotiationCycle, at)
			p.evictFor(c.requestState, at, victims)
		}
		c.preemption.release() // its costs were computed before victims of this gang were chosen
	}
	p.gangs().commitGang(w)
	b.cycle = 0
	return true
}

// failedRecently reports whether a gang could make no room a moment ago. Repeating the
// search in each cycle would cost too much.
func (p preemptionPlanner) failedRecently(w *requestState) bool {
	b := &w.Class.noVictims
	return b.cycle != 0 && w.Class.compiledFor == p.Matcher && !p.Now.Before(b.checkedAll) &&
		p.Now.Sub(b.checkedAll) < noFitTTL
}

// gangMayPreempt reports whether, by the sums of machines, a gang might fit if all
// preemptible claims were evicted.
func (p preemptionPlanner) gangMayPreempt(w *requestState) bool {
	preemptibleClaims := false
	for _, c := range w.parts {
		enough, some := p.partMayPreempt(c.requestState, c.units)
		if preemptibleClaims = preemptibleClaims || some; !enough {
			return false
		}
	}
	return preemptibleClaims
}

// partMayPreempt does the work of gangMayPreempt for units that ask for the same. It also
// returns whether any machine has a preemptible claim.
func (p preemptionPlanner) partMayPreempt(w *requestState, wanted int) (enough, preemptibleClaims bool) {
	app, top, units := w.Class.AppClass, p.highestPreemptible(w), 0
	one := roost.Resources{CPU: w.Class.Resources.CPU, Memory: w.Class.Resources.Memory}
	for at, m := range p.Machines {
		if m.drained {
			continue
		}
		cpu, memory := p.totalFree(app, at)
		room, l := p.roomBySums(w.Class, at), &m.preemptible[top]
		most := roost.Resources{CPU: max(cpu, room.CPU) + l.cpu[app], Memory: max(memory, room.Memory) + l.memory}
		preemptibleClaims = preemptibleClaims || l.claims > 0
		if units += w.unitsPerMachine(max(0, one.TimesIn(most))); units >= wanted && preemptibleClaims {
			return true, true
		}
	}
	return units >= wanted, preemptibleClaims
}

// gangFitsAfterVacates reports whether the rest of a gang fits when the claims that are
// leaving have left.
func (p preemptionPlanner) gangFitsAfterVacates(w *requestState) bool {
	type mark struct{ at, takes int }
	var marks []mark
	for _, at := range p.vacatingMachines {
		marks = append(marks, mark{at, len(p.vacatesByMachine[at].assigned)})
	}
	all := true
	for _, c := range w.parts {
		found := 0
		for all && found < c.unplaced && p.useVacatingRoom(c.requestState) {
			found++
		}
		c.preemption.nextVacating = 0
		all = all && found == c.unplaced
	}
	if all {
		return true
	}
	for _, m := range marks {
		s := p.vacatesByMachine[m.at]
		s.assigned = s.assigned[:m.takes]
	}
	return false
}

// evictionUndo is the state of a machine before claims were chosen there for a gang.
type evictionUndo struct {
	vacates           *pendingVacates
	freeing, assigned int
	chosen            []*MachineClaim
}

// recordEviction records the victims of a gang, so that their choice can be undone.
func (u *gangUndo) recordEviction(s *pendingVacates, m *Machine, victims []int32) {
	if u == nil {
		return
	}
	e := evictionUndo{vacates: s, freeing: len(s.freeing), assigned: len(s.assigned)}
	for _, i := range victims {
		e.chosen = append(e.chosen, &m.Claims[i])
	}
	u.evictions = append(u.evictions, e)
}

// undoEvictions undoes the choice of a gang's victims.
func (p preemptionPlanner) undoEvictions(u *gangUndo) {
	for i := len(u.evictions) - 1; i >= 0; i-- {
		e := &u.evictions[i]
		e.vacates.freeing, e.vacates.assigned = e.vacates.freeing[:e.freeing], e.vacates.assigned[:e.assigned]
		for _, c := range e.chosen {
			delete(e.vacates.chosen, c.ID)
			p.uncountEviction(c)
		}
	}
	if len(u.evictions) > 0 {
		p.vacatingMachines = p.vacatingMachines[:u.vacatingMachines]
	}
}
