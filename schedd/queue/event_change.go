package queue

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/mutant"
)

// This is what users ask of jobs, and what Roost does to whole ones: any number of tasks
// change by one event.

// changeTasks applies a change to the tasks that an event names.
func (q *Queue) changeTasks(j *job, e JobEvent, change func(j *job, i int)) {
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
func (q *Queue) taskChange(j *job, e JobEvent) func(j *job, i int) {
	switch e.Type {
	case Held:
		note := j.records.share(taskRecord{holdWanted: true, holdReason: e.Reason, requestedBy: e.RequestedBy})
		return func(j *job, i int) { q.applyHeld(j, i, e, note) }
	case Released:
		return func(j *job, i int) { q.applyReleased(j, i) }
	case Suspended:
		return func(j *job, i int) { q.applySuspension(j, i, true) }
	case Resumed:
		return func(j *job, i int) { q.applySuspension(j, i, false) }
	case Requeued:
		return func(j *job, i int) { q.applyRequeued(j, i) }
	case RemovalRequested, Dropped:
		note := j.records.share(taskRecord{removeWanted: true, reason: e.Reason, requestedBy: e.RequestedBy,
			ended: e.Time})
		return func(j *job, i int) { q.applyRemovalRequested(j, i, e, note) }
	default:
		return func(j *job, i int) { q.applyRetried(j, i) }
	}
}

func (q *Queue) applyHeld(j *job, i int, e JobEvent, note func(i int)) {
	switch s := j.state[i]; {
	case s.IsFinal() || s == roost.Held && !e.Force:
	case s == roost.Idle && mutant.Active(mutant.HoldIgnored):
		r := j.records.makeOwn(i)
		r.holdWanted, r.holdReason, r.requestedBy = true, e.Reason, e.RequestedBy
	case s.IsActive():
		r := j.records.makeOwn(i)
		r.holdWanted, r.holdReason, r.requestedBy = true, e.Reason, e.RequestedBy
		q.vacates = append(q.vacates, VacateAttempt{Attempt: q.attemptOf(j, i), Checkpoint: j.spec.Checkpoints != nil &&
			j.spec.Checkpoints.OnVacate, Reason: e.Reason})
	default:
		if r := j.records.own(i); r != nil {
			r.holdWanted, r.holdReason, r.requestedBy = true, e.Reason, e.RequestedBy
		} else {
			note(i)
		}
		if s != roost.Held {
			q.setTaskState(j, i, roost.Held)
		}
	}
}

func (q *Queue) applyReleased(j *job, i int) {
	if r := j.records.own(i); r != nil && !j.state[i].IsFinal() {
		r.holdWanted, r.holdReason, r.requestedBy, r.jobFailures, r.machineFailures = false, "", "", 0, 0
	}
	if j.state[i] == roost.Held {
		if j.records.own(i) == nil {
			j.records.drop(i)
		}
		if j.isBlocked() {
			q.setTaskState(j, i, roost.Blocked)
		} else {
			q.setTaskState(j, i, roost.Idle)
		}
	}
}

func (q *Queue) applyRemovalRequested(j *job, i int, e JobEvent, note func(i int)) {
	switch s := j.state[i]; {
	case s.IsFinal():
	case s.IsActive():
		r := j.records.makeOwn(i)
		r.removeWanted, r.reason, r.requestedBy, r.force = true, e.Reason, e.RequestedBy, e.Force
		q.vacates = append(q.vacates, VacateAttempt{Attempt: q.attemptOf(j, i), Fast: e.Force, Reason: e.Reason})
	default:
		if r := j.records.own(i); r != nil {
			r.removeWanted, r.reason, r.requestedBy, r.ended = true, e.Reason, e.RequestedBy, e.Time
		} else {
			note(i)
		}
		q.dropAllImages(j, i)
		j.lastEnded = max(j.lastEnded, e.Time)
		j.removedUnstarted = j.removedUnstarted || s == roost.Held || s == roost.Blocked
		q.setTaskState(j, i, roost.Removed)
	}
}

func (q *Queue) applyRetried(j *job, i int) {
	if !j.state[i].IsFinal() {
		return
	}
	if j.state[i] == roost.Completed && !j.records.hasSucceeded(i) {
		j.failed--
	}
	delete(q.finalJobs, j.seq)
	q.toResolve[j.seq], j.removedUnstarted = true, false
	if j.records.isShared(i) {
		j.records.drop(i)
		q.requeueOrHold(j, i, &taskRecord{})
		return
	}
	r := j.records.makeOwn(i)
	r.removeWanted, r.reason, r.requestedBy, r.force, r.holdWanted, r.holdReason, r.jobFailures,
		r.machineFailures = false, "", "", false, false, "", 0, 0
	q.requeueOrHold(j, i, resetWalltime(r))
}

func (q *Queue) applyUnblocked(j *job) {
	q.clearDependencies(j)
	j.dependencies, j.expectedBefore, j.expectedSync, j.startTimeReached = nil, 0, 0, true
	for _, other := range j.runOneSet {
		q.addDependent(j, other)
	}
	q.dependencies().updateBlocked(j)
}
