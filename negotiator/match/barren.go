package match

import "time"

// Most of what waits found no machine in the last plan, and most machines have not changed since. Such a request is not asked of all machines
// again, which would cost classes times machines in every cycle, but of those that have begun anew: because their ads changed, or what is
// promised of them, or because a plan placed something there. On all others it has less chance than before, for within a plan machines
// only fill up.
//
// That holds as long as nothing but the machines' own state kept it away: a want that was kept from a machine by anything else (Avoid, a
// reservation) is marked with keptOff, and looks everywhere again. Expressions may look at the time, and so all is looked at again every few seconds.

// lookAgain is after how long a request that found nothing is asked of all machines again.
const lookAgain = 5 * time.Second

// barren is what a class remembers of a plan in which no machine had room for it.
type barren struct {
	plan   int       // the number of the plan; 0 for none
	looked time.Time // when all machines were last asked
}

// remember notes which wants found no machine for all that they want.
func (p *plan) remember() {
	for _, w := range p.wants {
		if b := &w.Class.barren; w.barren && !w.keptOff {
			b.plan = p.cycle
			if w.few == nil {
				b.looked = p.Now
			}
		} else {
			b.plan = 0
		}
	}
}

// fillFresh is fill for a want that has been barren since some plan; ok is false if it has to look everywhere.
func (p *plan) fillFresh(w *want) (ok bool) {
	b := w.Class.barren
	if b.plan == 0 || len(p.fresh) == len(p.Machines) || w.Class.of != p.Matcher || len(w.Avoid) > 0 || p.Now.Before(b.looked) || p.Now.Sub(b.looked) >= lookAgain {
		return false
	}
	w.few = map[int32]float64{}
	if b.plan == p.cycle-1 {
		for _, at := range p.fresh {
			p.ask(w, at)
		}
		return true
	}
	for at, began := range p.stamp {
		if began > b.plan {
			p.ask(w, int32(at))
		}
	}
	return true
}

// ask adds one machine to the candidates of w, if it matches and has room.
func (p *plan) ask(w *want, at int32) {
	if _, ok := p.fits(w.Class, int(at)); !ok || p.drained[at] {
		return
	}
	if rank, ok := p.query(w.Class).Match(p.Machines[at].row, &p.env); ok {
		w.few[at] = usable(rank)
		p.offer(w, int(at))
	}
}
