package audit

import (
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
)

// The guarantees of the names of services.
const (
	EndedNameGuarantee  = UndoGuarantee + 1 + iota // S6
	ReadyNameGuarantee                             // S7
	NewestNameGuarantee                            // S8
)

// auditedNames is the names that a collector serves.
type auditedNames struct {
	since   time.Duration // since when it does
	shown   map[roost.TaskID]shownName
	highest map[roost.TaskID]roost.AttemptNumber
}

// shownName is to what the name of a task points.
type shownName struct {
	attempt roost.AttemptNumber
	ready   bool // otherwise queries do not find it
	since   time.Duration
	late    bool // a violation is recorded
}

// mayOverlap reports whether two attempts of a task may live at once.
func (j *auditedJob) mayOverlap() bool { return j.service != nil && j.service.Overlap }

// noteLate notes that what a node does or hears may come late for a while.
func (a *Auditor) noteLate(s *Event) {
	if s.Until > 0 {
		a.lateUntil[s.Node] = max(a.lateUntil[s.Node], s.Until)
		a.lateUntil[s.Peer] = max(a.lateUntil[s.Peer], s.Until)
	}
}

// checkNames follows to what names point. It checks S8: a name never points to an older
// attempt than before.
func (a *Auditor) checkNames(s *Event) {
	switch s.Type {
	case NamesServed:
		a.nameServers[s.Node] = &auditedNames{since: s.At, shown: map[roost.TaskID]shownName{},
			highest: map[roost.TaskID]roost.AttemptNumber{}}
		return
	case NamesGone:
		delete(a.nameServers, s.Node)
		return
	}
	n, id := a.nameServers[s.Node], s.taskID()
	if s.Attempt == 0 {
		delete(n.shown, id)
		return
	}
	if s.Attempt < n.highest[id] {
		a.addViolation(NewestNameGuarantee, taskHistory(id), "%s lets the name of %v point to attempt %d, and had it "+
			"point to attempt %d before", s.Node, id, s.Attempt, n.highest[id])
	}
	n.highest[id] = max(n.highest[id], s.Attempt)
	is := shownName{attempt: s.Attempt, ready: s.Detail == "ready", since: s.At}
	if was := n.shown[id]; was.attempt == is.attempt && was.ready == is.ready {
		is.since, is.late = was.since, was.late
	}
	n.shown[id] = is
}

// checkEndedNames checks S6: no name points to an attempt for long after its end. What is
// slow is not held against a collector, and neither is it if a machine is slow to say
// that an attempt has ended. But a machine that says nothing at all is known to be silent
// in time.
func (a *Auditor) checkEndedNames(at time.Duration) {
	if len(a.nameServers) == 0 || at < a.namesChecked+progressInterval {
		return
	}
	a.namesChecked = at
	for _, collector := range slices.Sorted(maps.Keys(a.nameServers)) {
		n := a.nameServers[collector]
		for _, id := range slices.SortedFunc(maps.Keys(n.shown), byTask) {
			x := n.shown[id]
			j := a.jobs[id.Job]
			if !x.ready || x.late || j == nil || id.Index >= len(j.tasks) {
				continue
			}
			ended, ok := j.tasks[id.Index].endedAt[x.attempt]
			node := j.tasks[id.Index].nodes[x.attempt]
			since := max(ended, x.since, a.lateUntil[collector], a.lateUntil[node])
			if !ok || at-since <= a.rules.NameDelay {
				continue
			}
			x.late = true
			n.shown[id] = x
			a.now = max(a.now, at)
			a.addViolation(EndedNameGuarantee, taskHistory(id), "at %s the name of %v points to attempt %d, which "+
				"ended at %s on %s", collector, id, x.attempt, ClockText(ended), node)
		}
	}
}

// checkReadyNames checks S7 when no fault is in the way. Every collector that lives has
// the name of each ready task.
func (a *Auditor) checkReadyNames(at time.Duration) {
	if len(a.nameServers) == 0 {
		return
	}
	for _, j := range a.sortedJobs() {
		if j.service == nil || j.service.recordLost {
			continue
		}
		for i := range j.tasks {
			t, id := &j.tasks[i], j.id.Task(i)
			if !j.wants(i) || !t.isUnfinished() || t.held || t.toBeRemoved || !t.service.ready || t.nameMissed ||
				!slices.ContainsFunc(t.processes, func(l runningProcess) bool { return l.attempt == t.assigned }) ||
				t.assigned == t.service.stopping {
				continue
			}
			for _, collector := range slices.Sorted(maps.Keys(a.nameServers)) {
				n := a.nameServers[collector]
				x := n.shown[id]
				if at-max(t.service.readyAt, a.faultsEnded, n.since) <= a.rules.StartWait ||
					x.attempt == t.assigned && x.ready {
					continue
				}
				t.nameMissed = true
				a.now = max(a.now, at)
				a.addViolation(ReadyNameGuarantee, taskHistory(id), "attempt %d of %v is ready since %s, and its name "+
					"at %s does not point to it", t.assigned, id, ClockText(t.service.readyAt), collector)
				break
			}
		}
	}
}
