package queue

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// ErrSignal says that there is no signal of that name.
var ErrSignal = fmt.Errorf("%w: there is no signal of that name or number", roost.Invalid)

// SignalTasks decides to send the running tasks of a target a signal, and returns their
// attempts. The event alone sends nothing, so that a replay does not either. It reaches
// only what runs (POSIX, qsig): a name of "" is that of no signal, and refused where any
// other would be taken.
func (q taskDecisions) SignalTasks(now time.Time, who CallerIdentity, t TaskSelector,
	name string) ([]eventlog.JobEvent, []roost.AttemptID, error) {
	running := func(s roost.TaskState) bool { return s == roost.Running || s == roost.Starting } // both are R in PBS
	events, err := q.decideChange(now, who, t, eventlog.JobEvent{Type: eventlog.Signalled, Reason: name}, running)
	if err != nil {
		return nil, nil, err
	}
	if name == "" {
		return nil, nil, fmt.Errorf("%v: %w", t, ErrSignal)
	}
	var to []roost.AttemptID
	j := q.jobs[t.Job.Seq]
	j.wholeGangs(t).eachIndex(len(j.state), func(i int) {
		if running(j.state[i]) && !j.isSecondary(i) {
			to = append(to, q.attemptOf(j, i))
		}
	})
	return events, to, nil
}

// OutputMessageTargets lists the attempts of a target's running tasks, into whose output
// a line may be written (POSIX, qmsg). That changes nothing here.
func (q taskDecisions) OutputMessageTargets(now time.Time, who CallerIdentity,
	t TaskSelector) (list []roost.AttemptID, err error) {
	running := func(s roost.TaskState) bool { return s == roost.Running || s == roost.Starting } // both are R in PBS
	if _, err := q.decideChange(now, who, t, eventlog.JobEvent{}, running); err != nil {
		return nil, err
	}
	j := q.jobs[t.Job.Seq]
	j.wholeGangs(t).eachIndex(len(j.state), func(i int) {
		if running(j.state[i]) && !j.isSecondary(i) {
			list = append(list, q.attemptOf(j, i))
		}
	})
	return list, nil
}

// CheckedAttempts lists the attempts of a target's running tasks with health checks,
// which may be held for a time. That changes nothing here.
func (q taskDecisions) CheckedAttempts(now time.Time, who CallerIdentity, t TaskSelector) ([]roost.AttemptID, error) {
	list, err := q.OutputMessageTargets(now, who, t)
	if err != nil {
		return nil, err
	}
	if s := q.jobs[t.Job.Seq].spec.Service; s == nil || !s.HasChecks {
		return nil, fmt.Errorf("%v: %w: the job has no health checks", t, roost.Invalid)
	}
	return list, nil
}

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
