package queue

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

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
