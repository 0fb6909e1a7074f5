package match

import "time"

// Most of what waits found no machine in the last plan, and most machines have not
// changed since. Such a request is not asked of all machines again, which would cost
// classes times machines in every cycle, but of those that have begun anew: because their
// ads changed, or what is promised of them, or because a plan placed something there. On
// all others it has less chance than before, for within a plan machines only fill up.
//
// That holds as long as nothing but the machines' own state kept it away: a want that was
// kept from a machine by anything else (Avoid, a reservation) is marked with
// excludedOtherwise, and looks everywhere again. Expressions may look at the time, and so
// all is looked at again every few seconds.

// noFitTTL is after how long a request that found nothing is asked of all machines again.
const noFitTTL = 5 * time.Second

// noFitCache is what a class remembers of a plan in which no machine had room for it.
type noFitCache struct {
	cycle      int       // the number of the plan; 0 for none
	checkedAll time.Time // when all machines were last asked
}

// storeNoFit notes which wants found no machine for all that they want.
func (p *negotiationCycle) storeNoFit() {
	for _, w := range p.requests {
		if b := &w.Class.noFit; w.noFit && !w.excludedOtherwise {
			b.cycle = p.cycleNumber
			if w.ranksSparse == nil {
				b.checkedAll = p.Now
			}
		} else {
			b.cycle = 0
		}
	}
}

// fillChanged is fill for a want that has been barren since some plan; ok is false if it
// has to look everywhere.
func (p *negotiationCycle) fillChanged(w *requestState) (ok bool) {
	b := w.Class.noFit
	if b.cycle == 0 || len(p.changedMachines) == len(p.Machines) || w.Class.compiledFor != p.Matcher ||
		len(w.Avoid) > 0 || p.Now.Before(b.checkedAll) || p.Now.Sub(b.checkedAll) >= noFitTTL {
		return false
	}
	w.ranksSparse = map[int32]float64{}
	if b.cycle == p.cycleNumber-1 {
		for _, at := range p.changedMachines {
			p.checkMachine(w, at)
		}
		return true
	}
	for at, began := range p.resetCycle {
		if began > b.cycle {
			p.checkMachine(w, int32(at))
		}
	}
	return true
}

// checkMachine adds one machine to the candidates of w, if it matches and has room.
func (p *negotiationCycle) checkMachine(w *requestState, at int32) {
	if _, ok := p.fitAndScore(w.Class, int(at)); !ok || p.drained[at] {
		return
	}
	if rank, ok := p.compiledQuery(w.Class).Match(p.Machines[at].row, &p.env); ok {
		w.ranksSparse[at] = rankOrZero(rank)
		p.addCandidate(w, int(at))
	}
}
