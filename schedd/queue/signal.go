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
