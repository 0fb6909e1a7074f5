package queue

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// attemptDecisions decides what becomes of attempts.
type attemptDecisions struct{ *jobTable }

// AssignNext decides to make the next attempt of a ready task on a claim.
func (q attemptDecisions) AssignNext(now time.Time, t roost.TaskID, node, address string,
	claim uint64) (eventlog.JobEvent, roost.AttemptID, error) {
	j := q.jobs[t.Job.Seq]
	if j == nil || t.Index < 0 || t.Index >= len(j.state) || j.state[t.Index] != roost.Idle {
		return eventlog.JobEvent{}, roost.AttemptID{}, fmt.Errorf("task %v: %w: it is not ready", t, roost.Conflict)
	}
	next := j.distrust.nextAttempt(j.records.Get(t.Index))
	e := eventlog.JobEvent{Type: eventlog.Assigned, Time: now.UnixNano(), Job: j.seq, Index: t.Index, Attempt: next,
		Node:    node,
		Address: address, Claim: claim}
	if m := j.records.Own(t.Index).NewestImage(); m != nil {
		image := *m
		e.Image = &image
	}
	return e,
		roost.AttemptID{Task: t, Attempt: next}, nil
}

// RecordStarted decides that the processes of an attempt run; false for old news.
func (q attemptDecisions) RecordStarted(now time.Time, a roost.AttemptID) (eventlog.JobEvent, bool) {
	if !q.IsLive(a) || q.jobs[a.Task.Job.Seq].state[a.Task.Index] != roost.Starting {
		return eventlog.JobEvent{}, false
	}
	e := eventAbout(now, eventlog.Started, a)
	e.Image = q.restoreImage(a)
	return e, true
}

// RecordEnded decides that an attempt has ended and its output is home. What is not live
// any more gives roost.Stale.
func (q attemptDecisions) RecordEnded(now time.Time, a roost.AttemptID, x *eventlog.AttemptExit) (eventlog.JobEvent,
	error) {
	if !q.IsLive(a) {
		return eventlog.JobEvent{}, fmt.Errorf("attempt %v: %w", a, roost.Stale)
	}
	e := eventAbout(now, eventlog.Ended, a)
	x = q.withSuccessCode(a, x)
	e.Exit, e.Force = q.judgeExit(now, a, q.interruptedExit(a, q.addPreemptionCost(a, x))), q.failsWhenInterrupted(a)
	return e, nil
}

// WithSuccessCode returns how an attempt ended with the exit code that its job calls
// success. The machine that it ran on does not know that code.
func WithSuccessCode(q *Queue, a roost.AttemptID, x *eventlog.AttemptExit) *eventlog.AttemptExit {
	return attemptDecisions{q.jobTable}.withSuccessCode(a, x)
}

func (q attemptDecisions) withSuccessCode(a roost.AttemptID, x *eventlog.AttemptExit) *eventlog.AttemptExit {
	j := q.jobs[a.Task.Job.Seq]
	if j == nil || x == nil || j.spec.SuccessCode == x.SuccessCode {
		return x
	}
	y := *x
	y.SuccessCode = j.spec.SuccessCode
	return &y
}

// RecordLost decides that an attempt is gone without an exit status; false for old news.
func (q attemptDecisions) RecordLost(now time.Time, a roost.AttemptID, reason string) (eventlog.JobEvent, bool) {
	if !q.IsLive(a) {
		return eventlog.JobEvent{}, false
	}
	e := eventAbout(now, eventlog.Lost, a)
	e.Reason, e.Force = reason, q.failsWhenInterrupted(a)
	return e, true
}

// HoldTask decides that Roost itself holds one task, because of something only a user can
// mend.
func (q attemptDecisions) HoldTask(now time.Time, t roost.TaskID, reason string) (eventlog.JobEvent, bool) {
	j := q.jobs[t.Job.Seq]
	if j == nil || t.Index >= len(j.state) || j.state[t.Index].IsFinal() {
		return eventlog.JobEvent{}, false
	}
	ranges := j.wholeGangs(TaskSelector{Ranges: []eventlog.IndexRange{{First: t.Index, Last: t.Index}}}).Ranges
	return eventlog.JobEvent{Type: eventlog.Held, Time: now.UnixNano(), Job: j.seq, Ranges: ranges, Reason: reason},
		true
}

// PurgeJob decides that a final job leaves the queue; the history has it.
func (q attemptDecisions) PurgeJob(now time.Time, seq uint64) (eventlog.JobEvent, bool) {
	j := q.jobs[seq]
	if j == nil || !j.isFinal() {
		return eventlog.JobEvent{}, false
	}
	return eventlog.JobEvent{Type: eventlog.Purged, Time: now.UnixNano(), Job: seq}, true
}

func eventAbout(now time.Time, what eventlog.EventType, a roost.AttemptID) eventlog.JobEvent {
	return eventlog.JobEvent{Type: what, Time: now.UnixNano(), Job: a.Task.Job.Seq, Index: a.Task.Index,
		Attempt: a.Attempt}
}

// addPreemptionCost adds to the end of a preempted attempt how much work is lost with it.
// That is the work that no checkpoint has, measured on the node's clock alone: how long
// the attempt ran, less how much of that is in the newest image.
func (q attemptDecisions) addPreemptionCost(a roost.AttemptID, x *eventlog.AttemptExit) *eventlog.AttemptExit {
	if x.Cause != eventlog.CausePreemption {
		return x
	}
	y := *x
	if y.Reason == "" {
		y.Reason = "preempted"
	}
	ran := time.Duration(x.Wall)
	lost := ran
	if r := q.jobs[a.Task.Job.Seq].records.Own(a.Task.Index); r != nil && r.NewestImage() != nil &&
		r.NewestImage().Attempt == a.Attempt {
		lost = min(max(ran-time.Duration(r.NewestImage().Wall-r.Checkpoints.OriginUsage.Wall), 0), ran)
	}
	switch whole := ran.Round(time.Second); {
	case whole == 0:
		y.Reason += "; it had only just begun"
	case lost == ran:
		y.Reason += fmt.Sprintf("; %v of work are lost", whole)
	case lost < time.Second:
		y.Reason += fmt.Sprintf("; its %v of work are saved", whole)
	default:
		y.Reason += fmt.Sprintf("; %v of its %v of work are lost, the rest is saved", lost.Round(time.Second), whole)
	}
	return &y
}

// failsWhenInterrupted reports whether a job that may not be run twice ends when it is
// interrupted. A job of PBS does, since its users look for its end (OpenPBS
// Administrator's Guide, "node_fail_requeue"). Others are held, for somebody to decide.
func (q attemptDecisions) failsWhenInterrupted(a roost.AttemptID) bool {
	p := q.jobs[a.Task.Job.Seq].spec
	return p.FromQsub && !p.Rerunnable
}

// interruptedExit makes CauseVacate of a machine failure that ended a program which may
// not be run twice. A machine failure is tried again at once, as if nothing had run.
func (q attemptDecisions) interruptedExit(a roost.AttemptID, x *eventlog.AttemptExit) *eventlog.AttemptExit {
	j := q.jobs[a.Task.Job.Seq]
	if r := j.records.Own(a.Task.Index); x.Cause != eventlog.CauseMachine || j.spec.Rerunnable || r == nil ||
		r.Started == 0 {
		return x
	}
	y := *x
	y.Cause = eventlog.CauseVacate
	return &y
}
