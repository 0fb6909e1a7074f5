package queue

import (
	"fmt"
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

// What the owner of a machine does to the tasks on it. A task stands still while anybody
// wants it to: its user, who says so here, or the owner of the machine that it runs on,
// who says so there. Its state is Suspended in either case, and why tells them apart.

// SuspendForOwner decides that a running attempt is suspended for the owner of its
// machine. With an empty reason it is not any more. It is false when that is so already,
// or the attempt does not run.
func (q attemptDecisions) SuspendForOwner(now time.Time, a roost.AttemptID, node, reason string) (eventlog.JobEvent,
	bool) {
	if !q.IsLive(a) {
		return eventlog.JobEvent{}, false
	}
	j := q.jobs[a.Task.Job.Seq]
	r := j.records.Own(a.Task.Index)
	if s := j.state[a.Task.Index]; s != roost.Running && s != roost.Suspended || r.OwnerReason == reason {
		return eventlog.JobEvent{}, false
	}
	what := eventlog.OwnerSuspended
	if reason == "" {
		what = eventlog.OwnerResumed
	}
	e := eventAbout(now, what, a)
	e.Node, e.Reason = node, reason
	return e, true
}

// applyOwnerSuspension folds that in.
func (q *Queue) applyOwnerSuspension(j *job, e eventlog.JobEvent) {
	i, r := e.Index, j.records.MakeOwn(e.Index)
	if !j.state[i].IsActive() {
		panic(fmt.Sprintf("queue: %v of %v, which is %v", e.Type, j.id(q.host).Task(i), j.state[i]))
	}
	switch {
	case e.Type == eventlog.OwnerSuspended:
		if r.OwnerReason == "" {
			r.AlsoByUser = j.state[i] == roost.Suspended
		}
		r.OwnerReason = e.Reason
		q.setTaskState(j, i, roost.Suspended)
		q.updateMaxRunning(j)
	case r.AlsoByUser:
		r.OwnerReason, r.AlsoByUser = "", false
	default:
		r.OwnerReason = ""
		q.setTaskState(j, i, roost.Running)
		q.updateMaxRunning(j)
	}
	q.gang().suspendGang(j, i)
}

// suspendedByUser reports whether a user has suspended a task.
func (j *job) suspendedByUser(i int) bool {
	if j.state[i] != roost.Suspended {
		return false
	}
	r := j.records.Own(i)
	return r == nil || r.OwnerReason == "" || r.AlsoByUser
}

// suspendedByOwner reports whether it stands still for the owner of its machine.
func (j *job) suspendedByOwner(i int) bool {
	r := j.records.Own(i)
	return j.state[i] == roost.Suspended && r != nil && r.OwnerReason != ""
}

// suspendedBy says who wants a task to stand still: "owner", "user", "owner,user" or
// nobody.
func (j *job) suspendedBy(i int) string {
	switch owner, user := j.suspendedByOwner(i), j.suspendedByUser(i); {
	case owner && user:
		return "owner,user"
	case owner:
		return "owner"
	case user:
		return "user"
	}
	return ""
}
