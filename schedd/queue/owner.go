package queue

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
)

// What the owner of a machine does to the tasks on it. A task stands still while anybody wants it to: its user, who says so here, or the owner of the
// machine that it runs on, who says so there. Its state is Suspended in either case, and why tells them apart.

// Stood decides that a running attempt stands still for the owner of its machine, or with an empty reason that it does no more. It is false when that is
// no news, or the attempt does not run.
func (q *Queue) Stood(now time.Time, a roost.AttemptID, node, reason string) (Event, bool) {
	if !q.Live(a) {
		return Event{}, false
	}
	j := q.jobs[a.Task.Job.Seq]
	r := j.book.written(a.Task.Index)
	if s := j.state[a.Task.Index]; s != roost.Running && s != roost.Suspended || r.owner == reason {
		return Event{}, false
	}
	what := OwnerBack
	if reason == "" {
		what = OwnerAway
	}
	e := q.about(now, what, a)
	e.Node, e.Reason = node, reason
	return e, true
}

// stood folds that in.
func (q *Queue) stood(j *job, e Event) {
	i, r := e.Index, j.of(e.Index)
	if !j.state[i].Active() {
		panic(fmt.Sprintf("queue: %v of %v, which is %v", e.What, j.id(q.host).Task(i), j.state[i]))
	}
	switch {
	case e.What == OwnerBack:
		if r.owner == "" {
			r.both = j.state[i] == roost.Suspended
		}
		r.owner = e.Reason
		q.transition(j, i, roost.Suspended)
		q.settleAll(j)
	case r.both:
		r.owner, r.both = "", false
	default:
		r.owner = ""
		q.transition(j, i, roost.Running)
		q.settleAll(j)
	}
	q.standTogether(j, i)
}

// byUser reports whether a user has suspended a task.
func (j *job) byUser(i int) bool {
	if j.state[i] != roost.Suspended {
		return false
	}
	r := j.book.written(i)
	return r == nil || r.owner == "" || r.both
}

// byOwner reports whether it stands still for the owner of its machine.
func (j *job) byOwner(i int) bool {
	r := j.book.written(i)
	return j.state[i] == roost.Suspended && r != nil && r.owner != ""
}

// suspendedBy says who wants a task to stand still: "owner", "user", "owner,user" or nobody.
func (j *job) suspendedBy(i int) string {
	switch owner, user := j.byOwner(i), j.byUser(i); {
	case owner && user:
		return "owner,user"
	case owner:
		return "owner"
	case user:
		return "user"
	}
	return ""
}
