package queue

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
)

// What the owner of a machine does to the tasks on it. A task stands still while anybody
// wants it to: its user, who says so here, or the owner of the machine that it runs on,
// who says so there. Its state is Suspended in either case, and why tells them apart.

// SuspendForOwner decides that a running attempt stands still for the owner of its
// machine, or with an empty reason that it does no more. It is false when that is no
// news, or the attempt does not run.
func (q attemptDecisions) SuspendForOwner(now time.Time, a roost.AttemptID, node, reason string) (JobEvent, bool) {
	if !q.IsLive(a) {
		return JobEvent{}, false
	}
	j := q.jobs[a.Task.Job.Seq]
	r := j.records.own(a.Task.Index)
	if s := j.state[a.Task.Index]; s != roost.Running && s != roost.Suspended || r.ownerReason == reason {
		return JobEvent{}, false
	}
	what := OwnerSuspended
	if reason == "" {
		what = OwnerResumed
	}
	e := eventAbout(now, what, a)
	e.Node, e.Reason = node, reason
	return e, true
}

// applyOwnerSuspension folds that in.
func (q *Queue) applyOwnerSuspension(j *job, e JobEvent) {
	i, r := e.Index, j.records.makeOwn(e.Index)
	if !j.state[i].IsActive() {
		panic(fmt.Sprintf("queue: %v of %v, which is %v", e.Type, j.id(q.host).Task(i), j.state[i]))
	}
	switch {
	case e.Type == OwnerSuspended:
		if r.ownerReason == "" {
			r.alsoByUser = j.state[i] == roost.Suspended
		}
		r.ownerReason = e.Reason
		q.setTaskState(j, i, roost.Suspended)
		q.updateMaxRunning(j)
	case r.alsoByUser:
		r.ownerReason, r.alsoByUser = "", false
	default:
		r.ownerReason = ""
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
	r := j.records.own(i)
	return r == nil || r.ownerReason == "" || r.alsoByUser
}

// suspendedByOwner reports whether it stands still for the owner of its machine.
func (j *job) suspendedByOwner(i int) bool {
	r := j.records.own(i)
	return j.state[i] == roost.Suspended && r != nil && r.ownerReason != ""
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
