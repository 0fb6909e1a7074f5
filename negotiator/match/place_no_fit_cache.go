package match

import "time"

// Most waiting requests found no machine in the last plan, and most machines have not
// changed since. Trying such a request on all machines again would cost classes times
// machines in every cycle. So it is tried only on machines that were reset, because their
// ads or their pending grants changed, or because a plan placed something there. On all
// other machines its chance is lower than before, because within a plan machines only
// fill up.
//
// That is right as long as only the machines' own state excluded them. A request that
// something else (Avoid, a reservation) excluded from a machine is marked with
// excludedOtherwise, and is tried everywhere again. Expressions may depend on the time,
// so every few seconds all machines are tried again.

// noFitTTL is how long a request that found no machine is tried only on changed machines.
const noFitTTL = 5 * time.Second

// noFitCache is what a class remembers of a plan in which no machine had room for it.
type noFitCache struct {
	cycle      int       // number of the cycle; 0: none
	checkedAll time.Time // when all machines were last tried
}

// storeNoFit records which requests found no machine for all their units.
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

// fillChanged does the work of fillCandidates for a request with a valid no-fit cache. ok
// is false if all machines must be tried.
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
