package queue

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// ErrNotRerunnable says that a job may not be run twice.
var ErrNotRerunnable = fmt.Errorf("%w: it may not be run twice", roost.Conflict)

// requeuedReason is why an attempt is ended that somebody wants to be made anew.
const requeuedReason = "it is to run again"

// RerunTasks decides to kill the attempts of a target's active tasks, and to make new
// ones (POSIX, qrerun). They are killed without notice, and begin anew. The next attempt
// begins when this one has ended, as after any other end (P4). Only an administrator may
// force it, which changes nothing else.
func (q taskDecisions) RerunTasks(now time.Time, who CallerIdentity, t TaskSelector,
	force bool) ([]eventlog.JobEvent, error) {
	events, err := q.decideEach(now, who, t, eventlog.JobEvent{Type: eventlog.Requeued, Reason: requeuedReason},
		(*job).isRequeuable)
	if err != nil {
		return nil, err
	}
	if force && !who.Admin {
		return nil, fmt.Errorf("%v: %w: only an administrator may force it", t, roost.PermissionDenied)
	}
	if !q.jobs[t.Job.Seq].spec.Rerunnable {
		return nil, fmt.Errorf("%v: %w", t, ErrNotRerunnable)
	}
	return events, nil
}

// RestartsWhenLost reports whether a task is started again when its attempt is lost.
// Otherwise it is held, or removed, as somebody wanted.
func (q *jobTable) RestartsWhenLost(t roost.TaskID) bool {
	j := q.jobs[t.Job.Seq]
	if j == nil || t.Index >= len(j.state) || !j.state[t.Index].IsActive() {
		return false
	}
	r := j.records.Own(t.Index)
	return !r.RemoveWanted && !r.HoldWanted && (j.spec.Rerunnable || r.RequeueWanted || r.NewestImage() != nil)
}

// isRequeuable reports whether a task has an attempt that nobody wants removed.
func (j *job) isRequeuable(i int) bool {
	return j.state[i].IsActive() && !j.records.Own(i).RemoveWanted
}

func (q *Queue) applyRequeued(j *job, i int) {
	if r := j.records.Own(i); r == nil || !j.isRequeuable(i) || r.RequeueWanted {
		return
	}
	j.records.MakeOwn(i).RequeueWanted = true
	q.vacates = append(q.vacates, VacateAttempt{Attempt: q.attemptOf(j, i), Fast: true, Reason: requeuedReason})
}
