package pool

import (
	"slices"
	"time"

	"github.com/roost-batch/roost/internal/sim/eventloop"
	"github.com/roost-batch/roost/startd/desktop/policy"
)

// OwnerSchedule describes how a machine owner comes and goes, independent of faults. With
// both times and hours the owner follows the times, but is present only within the hours.
// The zero value is an owner who never comes.
type OwnerSchedule struct {
	MeanAway    time.Duration        // from his going until he comes again, on the mean; 0: he is there all the time
	MeanPresent time.Duration        // for which he stays, on the mean
	Hours       []policy.WeeklyHours // by the clock on the wall; none: whenever
}

// minVisit is the shortest visit, and the shortest time between two.
const minVisit = time.Second

// ownerSchedule is the state of an owner who comes and goes.
type ownerSchedule struct {
	OwnerSchedule
	rand       *eventloop.SplitMix
	name       string        // name of the machine
	visitStart time.Duration // start of the last drawn visit, regardless of hours
	visitEnd   time.Duration
}

// ownerStream seeds a separate stream for owners. What else is drawn is the same with and
// without owners.
const ownerStream = 0x6f776e6572

// scheduleOwners plans the first visits of all owners.
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

// scheduleVisit plans the next visit of an owner, which plans the one after it.
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

// drawVisit draws the visit after the last one, regardless of hours.
func (h *ownerSchedule) drawVisit() {
	if h.MeanAway == 0 {
		h.visitStart, h.visitEnd = h.visitEnd, ForEver
		return
	}
	h.visitStart = h.visitEnd + max(h.rand.Exponential(h.MeanAway), minVisit)
	h.visitEnd = h.visitStart + max(h.rand.Exponential(h.MeanPresent), minVisit)
}

// nextVisit returns the first visit that is not over by now, or the rest of it. ok is
// false if there is none. calendar converts simulation time to the wall clock.
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

// wholeDay is how far hours are looked ahead. A longer presence is split into visits that
// follow at once.
const wholeDay = 24 * time.Hour

// nextMinute returns the start of the next minute of the wall clock.
func nextMinute(at time.Duration, calendar func(time.Duration) time.Time) time.Duration {
	wall := calendar(at)
	return at + wall.Truncate(time.Minute).Add(time.Minute).Sub(wall)
}
