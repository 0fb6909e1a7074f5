package queue

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
)

// ErrNotRerunnable says that a job may not be run twice.
var ErrNotRerunnable = fmt.Errorf("%w: it may not be run twice", roost.Conflict)

// requeuedReason is why an attempt is ended that somebody wants to be made anew.
const requeuedReason = "it is to run again"

// Rerun decides to kill the attempts of a target's active tasks, without notice, and to make new ones from the beginning (POSIX, qrerun). The next
// attempt begins when this one has ended, as after any other end (P4). To force it is an administrator's, and forces nothing more.
func (q *Queue) Rerun(now time.Time, who Submitter, t Target, force bool) ([]Event, error) {
	events, err := q.changeEach(now, who, t, Event{What: Requeued, Reason: requeuedReason}, (*job).requeuable)
	if err != nil {
		return nil, err
	}
	if force && !who.Admin {
		return nil, fmt.Errorf("%v: %w: only an administrator may force it", t, roost.PermissionDenied)
	}
	if !q.jobs[t.Job.Seq].plan.rerunnable {
		return nil, fmt.Errorf("%v: %w", t, ErrNotRerunnable)
	}
	return events, nil
}

// Repeats reports whether a task is started again when its attempt is lost. Otherwise it is held, or removed, as somebody wanted.
func (q *Queue) Repeats(t roost.TaskID) bool {
	j := q.jobs[t.Job.Seq]
	if j == nil || t.Index >= len(j.state) || !j.state[t.Index].Active() {
		return false
	}
	r := j.book.written(t.Index)
	return !r.removed && !r.held && (j.plan.rerunnable || r.requeued || r.newest() != nil)
}

// requeuable reports whether a task has an attempt that nobody wants removed.
func (j *job) requeuable(i int) bool { return j.state[i].Active() && !j.book.written(i).removed }

func (q *Queue) requeue(j *job, i int) {
	if r := j.book.written(i); r == nil || !j.requeuable(i) || r.requeued {
		return
	}
	j.of(i).requeued = true
	q.asked = append(q.asked, Vacate{Attempt: q.attemptOf(j, i), Fast: true, Reason: requeuedReason})
}

// endsBroken reports whether a job ends when it is interrupted and may not be run twice: one of PBS, whose users look for its end, does (OpenPBS
// Administrator's Guide, "node_fail_requeue"). Others are held, for somebody to decide.
func (q *Queue) endsBroken(a roost.AttemptID) bool {
	p := &q.jobs[a.Task.Job.Seq].plan
	return p.pbs && !p.rerunnable
}

// begun is how an attempt ended that may not be made twice: what a machine spoiled when its program ran already is no attempt that never was, to be made
// again at once.
func (q *Queue) begun(a roost.AttemptID, x *Exit) *Exit {
	j := q.jobs[a.Task.Job.Seq]
	if r := j.book.written(a.Task.Index); x.Cause != ByMachine || j.plan.rerunnable || r == nil || r.started == 0 {
		return x
	}
	y := *x
	y.Cause = ByVacating
	return &y
}
