package queue

import (
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/mutant"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// This is what users ask of jobs, and what Roost does to whole ones: any number of tasks
// change by one event.

// changeTasks applies a change to the tasks that an event names.
func (q *Queue) changeTasks(j *job, e eventlog.JobEvent, change func(j *job, i int)) {
	q.batchReady(j, func() {
		if len(e.Ranges) == 0 {
			for i := range j.state {
				change(j, i)
			}
		}
		for _, r := range e.Ranges {
			for i := r.First; i <= r.Last; i++ {
				change(j, i)
			}
		}
	})
}

// taskChange is what an event that a user asked for does to one task. Tasks that no
// attempt was made of share one note of it.
func (q *Queue) taskChange(j *job, e eventlog.JobEvent) func(j *job, i int) {
	switch e.Type {
	case eventlog.Held:
		note := j.records.Share(eventlog.TaskRecord{HoldWanted: true, HoldReason: e.Reason, RequestedBy: e.RequestedBy})
		return func(j *job, i int) { q.applyHeld(j, i, e, note) }
	case eventlog.Released:
		return func(j *job, i int) { q.applyReleased(j, i) }
	case eventlog.Suspended:
		return func(j *job, i int) { q.applySuspension(j, i, true) }
	case eventlog.Resumed:
		return func(j *job, i int) { q.applySuspension(j, i, false) }
	case eventlog.Requeued:
		return func(j *job, i int) { q.applyRequeued(j, i) }
	case eventlog.RemovalRequested, eventlog.Dropped:
		note := j.records.Share(eventlog.TaskRecord{RemoveWanted: true, Reason: e.Reason, RequestedBy: e.RequestedBy,
			Ended: e.Time})
		return func(j *job, i int) {
			if !(flowChanges{q}).remove(j, e) {
				q.applyRemovalRequested(j, i, e, note)
			}
		}
	default:
		return func(j *job, i int) { q.applyRetried(j, i) }
	}
}

func (q *Queue) applyHeld(j *job, i int, e eventlog.JobEvent, note func(i int)) {
	switch s := j.state[i]; {
	case s.IsFinal() || s == roost.Held && !e.Force:
	case s == roost.Idle && mutant.Active(mutant.HoldIgnored):
		r := j.records.MakeOwn(i)
		r.HoldWanted, r.HoldReason, r.RequestedBy = true, e.Reason, e.RequestedBy
	case s.IsActive():
		r := j.records.MakeOwn(i)
		r.HoldWanted, r.HoldReason, r.RequestedBy = true, e.Reason, e.RequestedBy
		q.vacates = append(q.vacates, VacateAttempt{Attempt: q.attemptOf(j, i), Checkpoint: j.spec.Checkpoints != nil &&
			j.spec.Checkpoints.OnVacate, Reason: e.Reason})
	default:
		if j.records.Own(i) != nil || j.spec.Policy != nil { // its state has a time of its own
			r := j.records.MakeOwn(i)
			r.HoldWanted, r.HoldReason, r.RequestedBy = true, e.Reason, e.RequestedBy
		} else {
			note(i)
		}
		if s != roost.Held {
			q.setTaskState(j, i, roost.Held)
		}
	}
}

func (q *Queue) applyReleased(j *job, i int) {
	if r := j.records.Own(i); r != nil && !j.state[i].IsFinal() {
		r.HoldWanted, r.HoldReason, r.RequestedBy, r.JobFailures, r.MachineFailures = false, "", "", 0, 0
	}
	if j.state[i] == roost.Held {
		if j.records.Own(i) == nil {
			j.records.Drop(i)
		}
		if isTaskBlocked(q.jobTable, j, i) {
			q.setTaskState(j, i, roost.Blocked)
		} else {
			q.setTaskState(j, i, roost.Idle)
		}
	}
}

func (q *Queue) applyRemovalRequested(j *job, i int, e eventlog.JobEvent, note func(i int)) {
	switch s := j.state[i]; {
	case s.IsFinal():
	case s.IsActive():
		r := j.records.MakeOwn(i)
		r.RemoveWanted, r.Reason, r.RequestedBy, r.Force = true, e.Reason, e.RequestedBy, e.Force
		q.vacates = append(q.vacates, VacateAttempt{Attempt: q.attemptOf(j, i), Fast: e.Force, Reason: e.Reason})
	default:
		if r := j.records.Own(i); r != nil {
			r.RemoveWanted, r.Reason, r.RequestedBy, r.Ended = true, e.Reason, e.RequestedBy, e.Time
		} else {
			note(i)
		}
		q.dropAllImages(j, i)
		j.lastEnded = max(j.lastEnded, e.Time)
		if s == roost.Held || s == roost.Blocked {
			j.ownExtras().removedUnstarted = true
		}
		q.setTaskState(j, i, roost.Removed)
	}
}

func (q *Queue) applyRetried(j *job, i int) {
	if !j.state[i].IsFinal() {
		return
	}
	if j.state[i] == roost.Completed && !j.records.HasSucceeded(i) {
		j.failed--
	}
	delete(q.finalJobs, j.seq)
	delete(j.released, i)
	flowChanges{q}.retry(j)
	q.toResolve[j.seq] = true
	if j.removedUnstarted {
		j.ownExtras().removedUnstarted = false
	}
	if j.records.IsShared(i) {
		j.records.Drop(i)
		q.requeueOrHold(j, i, &eventlog.TaskRecord{})
		return
	}
	r := j.records.MakeOwn(i)
	if r.Service != nil { // its revision may be forgotten
		r.Service.Updated = eventlog.TaskRevision{Revision: revisionsOf(j).revision()}
	}
	r.RemoveWanted, r.Reason, r.RequestedBy, r.Force, r.HoldWanted, r.HoldReason, r.JobFailures,
		r.MachineFailures = false, "", "", false, false, "", 0, 0
	q.requeueOrHold(j, i, resetWalltime(r))
}

func (q *Queue) applyUnblocked(j *job) {
	byIndex := slices.DeleteFunc(slices.Clone(j.dependencies), func(w eventlog.JobDependency) bool {
		o := q.jobs[w.Job]
		return isOfWholeJob(w) || o == nil || o.isFinal()
	})
	q.clearDependencies(j)
	if !j.shared {
		j.dependencies, j.expectedBefore, j.expectedSync, j.startTimeReached = slices.Clip(byIndex), 0, 0, true
	}
	for _, w := range byIndex {
		q.addDependent(j, w.Job)
	}
	for _, other := range j.runOneSet {
		q.addDependent(j, other)
	}
	q.dependencies().updateBlocked(j)
}
