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
	case Stood, WentOn:
		id := roost.AttemptID{Task: s.task(), Attempt: s.Attempt}
		if t, ok := m.living[id]; ok {
			t.still, t.moved = s.What == Stood, s.At
			m.living[id] = t
		}
	}
}

// disturbed holds what lives against what is promised to owners: it does not run on while they are there. The time for stopping it begins when they come, or
// their machine wakes; what begins or goes on after that has none.
func (a *Auditor) disturbed(at time.Duration) {
	if a.seated == 0 {
		return
	}
	var all []overdue
	for _, m := range a.machines {
		if !m.seated || m.asleep {
			continue
		}
		for id, t := range m.living {
			if due := max(max(m.came, m.woke)+a.rules.Freezing, t.moved); !t.still && !t.disturbs && at > due {
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
		keep := func(s *Seen) bool {
			return about(s) || s.Node == o.node && (s.What == Froze || s.What == Woke || s.What == Seated || s.What == Away || s.What == Offered || s.What == Injected)
		}
		a.breach(ToOwners, keep, "attempt %d of %v runs on %s, and somebody has used that since %s", o.id.Attempt, o.id.Task, o.node, Clock(a.machines[o.node].came))
	}
}
