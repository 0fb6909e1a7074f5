package audit

import (
	"cmp"
	"slices"
	"time"

	"github.com/roost-batch/roost"
)

// checkOwner tracks owners, guards and suspended tasks.
func (a *Auditor) checkOwner(s *Event) {
	m := a.machine(s.Node)
	switch s.Type {
	case OwnerCame:
		m.ownerPresent, m.ownerSince = true, s.At
		a.ownedNow++
	case OwnerLeft:
		if m.ownerPresent {
			a.ownedNow--
		}
		m.ownerPresent = false
	case GuardDied:
		m.unwatched = true
	case GuardWatching:
		m.unwatched, m.watchedSince = false, s.At
	case GuardMissed:
		m.guardMissing, m.missingSince = true, s.At
		a.guardMissing++
	case GuardHeard:
		if m.guardMissing {
			a.guardMissing--
		}
		m.guardMissing = false
	case Suspended, Resumed:
		id := roost.AttemptID{Task: s.taskID(), Attempt: s.Attempt}
		if t, ok := m.attempts[id]; ok {
			t.suspended, t.runningSince = s.Type == Suspended, s.At
			m.attempts[id] = t
		}
	}
}

// checkDisturbed checks the guarantee to owners: tasks do not run while they are present.
// The time for freezing begins when the owner comes, when the machine wakes, or when a
// restarted guard first observes. Attempts that start or resume later have no such time.
// The same holds while the startd knows that it has no guard, since nothing could detect
// the owner.
func (a *Auditor) checkDisturbed(at time.Duration) {
	if a.ownedNow+a.guardMissing == 0 {
		return
	}
	var all []expiredAttempt
	for _, m := range a.machines {
		since, ok := m.privateSince()
		if !ok {
			continue
		}
		for id, t := range m.attempts {
			if due := max(since+a.rules.FreezeTime, t.runningSince); !t.suspended && !t.disturbsOwner && at > due {
				t.disturbsOwner = true
				m.attempts[id] = t
				all = append(all, expiredAttempt{due, m.name, id})
			}
		}
	}
	slices.SortFunc(all, func(x, y expiredAttempt) int {
		return cmp.Or(cmp.Compare(x.due, y.due), byTask(x.id.Task, y.id.Task))
	})
	for _, o := range all {
		a.now = max(a.now, o.due)
		about := taskHistory(o.id.Task)
		matches := func(s *Event) bool { return about(s) || s.Node == o.node && s.Type.concernsOwner() }
		m := a.machines[o.node]
		why := "somebody has used that since " + ClockText(m.ownerSince)
		if !m.ownerPresent || m.unwatched {
			why = "nothing is heard of its guard since " + ClockText(m.missingSince)
		}
		a.addViolation(OwnerGuarantee, matches, "attempt %d of %v runs on %s, and %s", o.id.Attempt, o.id.Task,
			o.node, why)
	}
}

// concernsOwner reports whether an event belongs to the history of a disturbed owner.
func (w EventType) concernsOwner() bool {
	switch w {
	case Slept, Woke, OwnerCame, OwnerLeft, GuardDied, GuardWatching, GuardMissed, GuardHeard, Offered, Injected:
		return true
	}
	return false
}

// privateSince returns since when no task may run, for the owner's sake; ok is false if
// tasks may run.
func (m *auditedMachine) privateSince() (since time.Duration, ok bool) {
	since = noDeadline
	if m.ownerPresent && !m.unwatched {
		since = max(m.ownerSince, m.wokeAt, m.watchedSince)
	}
	if m.guardMissing {
		since = min(since, max(m.missingSince, m.wokeAt))
	}
	return since, since != noDeadline && !m.asleep
}
