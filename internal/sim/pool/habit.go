package pool

import (
	"slices"
	"time"

	"github.com/roost-batch/roost/internal/sim/kernel"
	"github.com/roost-batch/roost/startd/owner"
)

// Visits is how the owner of a machine comes and goes by himself, whatever faults there are. Where there are both times and hours he comes and goes as the times
// say, and is there only within the hours. The zero value: he never comes.
type Visits struct {
	Away    time.Duration // from his going until he comes again, on the mean; 0: he is there all the time
	Present time.Duration // for which he stays, on the mean
	Hours   []owner.Hours // by the clock on the wall; none: whenever
}

// briefest is the shortest visit, and the shortest time between two.
const briefest = time.Second

// habit is an owner who comes and goes.
type habit struct {
	Visits
	rand *kernel.Rand
	name string        // the machine's
	from time.Duration // the visit that was drawn last, whatever the hours
	to   time.Duration
}

// ofOwners makes numbers of their own for owners: what else is drawn is the same whether they come or not.
const ofOwners = 0x6f776e6572

// haunt has the owners of machines come and go.
func (p *Pool) haunt() {
	for i, m := range p.machines {
		v := m.of.Visits
		if m.guard == nil || v.Away == 0 && len(v.Hours) == 0 {
			continue
		}
		h := &habit{Visits: v, name: m.name, rand: kernel.NewRand(p.cfg.Seed, ofOwners+uint64(i)<<40)}
		h.draw()
		p.owned = true
		p.visit(h)
	}
}

// visit has the next visit of an owner happen when it does, and the one after it likewise.
func (p *Pool) visit(h *habit) {
	from, to, ok := h.next(p.k.Now(), func(at time.Duration) time.Time { return p.cfg.Began.Add(at) })
	if !ok {
		return
	}
	p.At(from, func() {
		p.OwnerComes(h.name, to-from)
		p.At(to, func() { p.visit(h) })
	})
}

// draw draws the visit after the last one, whatever the hours.
func (h *habit) draw() {
	if h.Away == 0 {
		h.from, h.to = h.to, ForEver
		return
	}
	h.from = h.to + max(h.rand.Exponential(h.Away), briefest)
	h.to = h.from + max(h.rand.Exponential(h.Present), briefest)
}

// next is the first visit that is not over by an instant, or what is left of it; ok is false where there is none any more. Calendar is what the clock on the wall shows.
func (h *habit) next(now time.Duration, calendar func(time.Duration) time.Time) (from, to time.Duration, ok bool) {
	for from = now; from < ForEver; {
		if from >= h.to {
			h.draw()
		}
		from = max(from, h.from)
		if len(h.Hours) == 0 {
			return from, h.to, from < ForEver
		}
		within := func(at time.Duration) bool {
			return slices.ContainsFunc(h.Hours, func(x owner.Hours) bool { return x.Hold(calendar(at)) })
		}
		for !within(from) && from < h.to {
			from = minute(from, calendar)
		}
		if from >= h.to {
			continue
		}
		for to = from; within(to) && to < h.to && to-from < aDay; {
			to = minute(to, calendar)
		}
		return from, min(to, h.to), true
	}
	return 0, 0, false
}

// aDay is for how long hours are looked ahead: who is there longer comes again as soon as he goes.
const aDay = 24 * time.Hour

// minute is when the clock on the wall shows the next one.
func minute(at time.Duration, calendar func(time.Duration) time.Time) time.Duration {
	wall := calendar(at)
	return at + wall.Truncate(time.Minute).Add(time.Minute).Sub(wall)
}
