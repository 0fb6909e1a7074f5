package audit

import (
	"cmp"
	"slices"
	"time"

	"github.com/roost-batch/roost"
)

// seeOwner takes in whether somebody uses a machine, and which tasks stand still.
func (a *Auditor) seeOwner(s *Seen) {
	m := a.machine(s.Node)
	switch s.What {
	case Seated:
		m.seated, m.came = true, s.At
		a.seated++
	case Away:
		if m.seated {
			a.seated--
		}
		m.seated = false
	case Unwatched:
		m.blind = true
	case Watched:
		m.blind, m.looked = false, s.At
	case Missed:
		m.missed, m.since = true, s.At
		a.missed++
	case Heard:
		if m.missed {
			a.missed--
		}
		m.missed = false
	case Stood, WentOn:
		id := roost.AttemptID{Task: s.task(), Attempt: s.Attempt}
		if t, ok := m.living[id]; ok {
			t.still, t.moved = s.What == Stood, s.At
			m.living[id] = t
		}
	}
}

// disturbed holds what lives against what is promised to owners: it does not run on while they are there. The time for stopping it begins when they come, or
// their machine wakes, or a guard looks at it that was started again; what begins or goes on after that has none. Where the startd knows that there is no guard, nobody
// could say whether they are there: then the same holds.
func (a *Auditor) disturbed(at time.Duration) {
	if a.seated+a.missed == 0 {
		return
	}
	var all []overdue
	for _, m := range a.machines {
		since, ok := m.private()
		if !ok {
			continue
		}
		for id, t := range m.living {
			if due := max(since+a.rules.Freezing, t.moved); !t.still && !t.disturbs && at > due {
				t.disturbs = true
				m.living[id] = t
				all = append(all, overdue{due, m.name, id})
			}
		}
	}
	slices.SortFunc(all, func(x, y overdue) int { return cmp.Or(cmp.Compare(x.due, y.due), byTask(x.id.Task, y.id.Task)) })
	for _, o := range all {
		a.now = max(a.now, o.due)
		about := ofTask(o.id.Task)
		keep := func(s *Seen) bool { return about(s) || s.Node == o.node && s.What.ofOwner() }
		m := a.machines[o.node]
		why := "somebody has used that since " + Clock(m.came)
		if !m.seated || m.blind {
			why = "nothing is heard of its guard since " + Clock(m.since)
		}
		a.breach(ToOwners, keep, "attempt %d of %v runs on %s, and %s", o.id.Attempt, o.id.Task, o.node, why)
	}
}

// ofOwner reports whether it is told of a machine whose owner was disturbed.
func (w What) ofOwner() bool {
	switch w {
	case Froze, Woke, Seated, Away, Unwatched, Watched, Missed, Heard, Offered, Injected:
		return true
	}
	return false
}

// private is since when nothing may run on a machine for its owner's sake; ok is false where it may.
func (m *machine) private() (since time.Duration, ok bool) {
	since = never
	if m.seated && !m.blind {
		since = max(m.came, m.woke, m.looked)
	}
	if m.missed {
		since = min(since, max(m.since, m.woke))
	}
	return since, since != never && !m.asleep
}
