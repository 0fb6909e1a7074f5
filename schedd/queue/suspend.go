package queue

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// SuspendTasks decides to freeze running tasks where they are.
func (q taskDecisions) SuspendTasks(now time.Time, who CallerIdentity, t TaskSelector,
	reason string) ([]eventlog.JobEvent, error) {
	if reason == "" {
		reason = "by " + q.requester(who, t)
	}
	e := eventlog.JobEvent{Type: eventlog.Suspended, Reason: reason}
	return q.decideEach(now, who, t, e, func(j *job, i int) bool {
		return j.state[i] == roost.Running || j.state[i] == roost.Suspended && !j.suspendedByUser(i)
	})
}

// ResumeTasks decides to let suspended tasks run on.
func (q taskDecisions) ResumeTasks(now time.Time, who CallerIdentity, t TaskSelector) ([]eventlog.JobEvent, error) {
	return q.decideEach(now, who, t, eventlog.JobEvent{Type: eventlog.Resumed}, (*job).suspendedByUser)
}

// applySuspension suspends a running task for a user, or resumes it, and asks its machine
// to do so. The owner of the machine may still have it suspended.
func (q *Queue) applySuspension(j *job, i int, on bool) {
	s := j.state[i]
	if s != roost.Running && s != roost.Suspended || j.suspendedByUser(i) == on {
		return
	}
	r := j.records.MakeOwn(i)
	r.OwnCheckpoints().Frozen = true
	switch {
	case r.OwnerReason != "":
		r.AlsoByUser = on
	case on:
		q.setTaskState(j, i, roost.Suspended)
	default:
		q.setTaskState(j, i, roost.Running)
	}
	if on || !j.suspendedWithGang(i) {
		q.freezes = append(q.freezes, FreezeAttempt{q.attemptOf(j, i), on})
	}
}

// WantFrozen tells how a live attempt is to be, once somebody has suspended it; false
// when nobody ever has.
func (q *jobTable) WantFrozen(a roost.AttemptID) (FreezeAttempt, bool) {
	if !q.IsLive(a) {
		return FreezeAttempt{}, false
	}
	j := q.jobs[a.Task.Job.Seq]
	r := j.records.Own(a.Task.Index)
	if r.Checkpoints == nil || !r.Checkpoints.Frozen {
		return FreezeAttempt{}, false
	}
	return FreezeAttempt{a, j.suspendedByUser(a.Task.Index) || j.suspendedWithGang(a.Task.Index)}, true
}
