package pool

import (
	"slices"
	"time"

	"github.com/roost-batch/roost/internal/sim/eventloop"
	"github.com/roost-batch/roost/startd/desktop/policy"
)

// OwnerSchedule is how the owner of a machine comes and goes by himself, whatever faults
// there are. Where there are both times and hours he comes and goes as the times say, and
// is there only within the hours. The zero value: he never comes.
type OwnerSchedule struct {
	MeanAway    time.Duration        // from his going until he comes again, on the mean; 0: he is there all the time
	MeanPresent time.Duration        // for which he stays, on the mean
	Hours       []policy.WeeklyHours // by the clock on the wall; none: whenever
}

// minVisit is the shortest visit, and the shortest time between two.
const minVisit = time.Second

// ownerSchedule is an owner who comes and goes.
type ownerSchedule struct {
	OwnerSchedule
	rand       *eventloop.SplitMix
	name       string        // the machine's
	visitStart time.Duration // the visit that was drawn last, whatever the hours
	visitEnd   time.Duration
}

// ownerStream makes numbers of their own for owners: what else is drawn is the same
// whether they come or not.
const ownerStream = 0x6f776e6572

// scheduleOwners has the owners of machines come and go.
func (p *Pool) scheduleOwners() {
	for i, m := range p.machines {
		v := m.config.OwnerSchedule
		if m.guard == nil || v.MeanAway == 0 && len(v.Hours) == 0 {
			continue
		}
		h := &ownerSchedule{OwnerSchedule: v, name: m.name,
			rand: eventloop.NewRand(p.cfg.Seed, ownerStream+uint64(i)<<40)}
		h.drawVisit()
		p.hasOwners = true
		p.scheduleVisit(h)
	}
}

// scheduleVisit has the next visit of an owner happen when it does, and the one after it
// likewise.
func (p *Pool) scheduleVisit(h *ownerSchedule) {
	from, to, ok := h.nextVisit(p.loop.Now(), func(at time.Duration) time.Time { return p.cfg.StartTime.Add(at) })
	if !ok {
		return
	}
	p.CallAt(from, func() {
		p.OwnerComes(h.name, to-from)
		p.CallAt(to, func() { p.scheduleVisit(h) })
	})
}

// drawVisit draws the visit after the last one, whatever the hours.
func (h *ownerSchedule) drawVisit() {
	if h.MeanAway == 0 {
		h.visitStart, h.visitEnd = h.visitEnd, ForEver
		return
	}
	h.visitStart = h.visitEnd + max(h.rand.Exponential(h.MeanAway), minVisit)
	h.visitEnd = h.visitStart + max(h.rand.Exponential(h.MeanPresent), minVisit)
}

// nextVisit is the first visit that is not over by an instant, or what is left of it; ok
// is false where there is none any more. Calendar is what the clock on the wall shows.
func (h *ownerSchedule) nextVisit(now time.Duration,
	calendar func(time.Duration) time.Time) (from, to time.Duration, ok bool) {
	for from = now; from < ForEver; {
		if from >= h.visitEnd {
			h.drawVisit()
		}
		from = max(from, h.visitStart)
		if len(h.Hours) == 0 {
			return from, h.visitEnd, from < ForEver
		}
		within := func(at time.Duration) bool {
			return slices.ContainsFunc(h.Hours, func(x policy.WeeklyHours) bool { return x.Contains(calendar(at)) })
		}
		for !within(from) && from < h.visitEnd {
			from = nextMinute(from, calendar)
		}
		if from >= h.visitEnd {
			continue
		}
		for to = from; within(to) && to < h.visitEnd && to-from < wholeDay; {
			to = nextMinute(to, calendar)
		}
		return from, min(to, h.visitEnd), true
	}
	return 0, 0, false
}

// wholeDay is for how long hours are looked ahead: who is there longer comes again as
// soon as he goes.
const wholeDay = 24 * time.Hour

// nextMinute is when the clock on the wall shows the next one.
func nextMinute(at time.Duration, calendar func(time.Duration) time.Time) time.Duration {
	wall := calendar(at)
	return at + wall.Truncate(time.Minute).Add(time.Minute).Sub(wall)
}
