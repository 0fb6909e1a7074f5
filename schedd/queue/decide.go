package queue

import (
	"errors"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
)

// Hold decides to hold tasks. What runs is to be ended first; no new attempt starts from then on (P8).
func (q *Queue) Hold(now time.Time, who Submitter, t Target, reason string) ([]Event, error) {
	if reason == "" {
		reason = "by " + who.User
	}
	return q.change(now, who, t, Event{What: Held, Reason: reason}, func(s roost.TaskState) bool { return !s.Final() && s != roost.Held })
}

// Release decides to let held tasks go on. What somebody else holds than the owner, who is an administrator then, only an administrator releases (POSIX
// XCU 3.2.2, Hold_Types).
func (q *Queue) Release(now time.Time, who Submitter, t Target) ([]Event, error) {
	if j := q.jobs[t.Job.Seq]; j != nil && !who.Admin {
		by := ""
		j.whole(t).each(len(j.state), func(i int) {
			if j.state[i].Final() || by != "" {
				return
			}
			if r := j.book.at(i); r != nil && r.held && r.by != j.sub.Owner {
				by = r.by
			}
		})
		if by != "" && who.UID == j.sub.UID {
			return nil, fmt.Errorf("%v: %w: %s holds it, and only an administrator may let it go on", t, roost.PermissionDenied, by)
		}
	}
	return q.change(now, who, t, Event{What: Released}, func(s roost.TaskState) bool { return s == roost.Held || s.Active() })
}

// Remove decides to take tasks out. What runs is ended first.
func (q *Queue) Remove(now time.Time, who Submitter, t Target, reason string, force bool) ([]Event, error) {
	if reason == "" {
		reason = "by " + who.User
	}
	events, err := q.change(now, who, t, Event{What: RemovalRequested, Reason: reason, Force: force}, func(s roost.TaskState) bool { return !s.Final() })
	if j := q.jobs[t.Job.Seq]; errors.Is(err, roost.Finished) && len(t.Ranges) > 0 && !j.final() && !j.endedSubjob(t) {
		return nil, nil // a range stands for those that there are, and of those none is left (OpenPBS)
	}
	return events, err
}

// Retry decides to run failed and removed tasks again.
func (q *Queue) Retry(now time.Time, who Submitter, t Target) ([]Event, error) {
	j := q.jobs[t.Job.Seq]
	events, err := q.change(now, who, t, Event{What: Retried}, roost.TaskState.Final)
	if err != nil || j == nil {
		return events, err
	}
	if j.plan.led {
		return j.retryLed(t, events)
	}
	var failed []Range
	t.each(len(j.state), func(i int) {
		if j.state[i] == roost.Removed || j.state[i] == roost.Completed && !j.book.succeeded(i) {
			failed = appendIndex(failed, i)
		}
	})
	if len(failed) == 0 {
		return nil, noneFailed(t)
	}
	events[0].Ranges = failed
	return events, nil
}

// ErrNoneFailed says that there is nothing to run again.
var ErrNoneFailed = fmt.Errorf("%w: none of its tasks has failed", roost.Conflict)

func noneFailed(t Target) error { return fmt.Errorf("%v: %w", t, ErrNoneFailed) }

// change decides on an event for the tasks of a target, of which at least one must be in a state where it means something.
func (q *Queue) change(now time.Time, who Submitter, t Target, e Event, sensible func(roost.TaskState) bool) ([]Event, error) {
	return q.changeEach(now, who, t, e, func(j *job, i int) bool { return sensible(j.state[i]) })
}

// changeEach is change where more than its state says whether it makes sense for a task.
func (q *Queue) changeEach(now time.Time, who Submitter, t Target, e Event, sensible func(j *job, i int) bool) ([]Event, error) {
	j := q.jobs[t.Job.Seq]
	if j == nil {
		return nil, fmt.Errorf("%v: %w: there is no such job", t, roost.NotFound)
	}
	if !who.Admin && who.UID != j.sub.UID {
		return nil, fmt.Errorf("%v: %w: it belongs to %s", t, roost.PermissionDenied, j.sub.Owner)
	}
	if bad, ok := t.beyond(len(j.state)); ok {
		return nil, fmt.Errorf("%v: %w: the job has %d tasks, and none of number %d", t, ErrNoSubjob, len(j.state), bad)
	}
	t = j.whole(t)
	any, final := false, true
	t.each(len(j.state), func(i int) {
		any = any || sensible(j, i)
		final = final && j.state[i].Final()
	})
	switch {
	case !any && final && e.What != Retried && j.endedSubjob(t):
		return nil, fmt.Errorf("%v: %w", t, ErrEndedSubjob)
	case !any && final && e.What != Retried:
		return nil, fmt.Errorf("%v: %w", t, roost.Finished)
	case !any:
		return nil, fmt.Errorf("%v: %w: it is %s", t, roost.Conflict, q.describe(j, t))
	}
	e.Time, e.Job, e.By, e.Ranges = now.UnixNano(), j.seq, who.User, t.Ranges
	return []Event{e}, nil
}

// describe names the state of a target's first task.
func (q *Queue) describe(j *job, t Target) string {
	i := 0
	if len(t.Ranges) > 0 {
		i = t.Ranges[0].First
	}
	if j.byOwner(i) {
		return j.state[i].String() + ": " + j.reason(i)
	}
	return j.state[i].String()
}

// Assign decides to make the next attempt of a ready task on a claim.
func (q *Queue) Assign(now time.Time, t roost.TaskID, node, address string, claim uint64) (Event, roost.AttemptID, error) {
	j := q.jobs[t.Job.Seq]
	if j == nil || t.Index < 0 || t.Index >= len(j.state) || j.state[t.Index] != roost.Idle {
		return Event{}, roost.AttemptID{}, fmt.Errorf("task %v: %w: it is not ready", t, roost.Conflict)
	}
	next := j.nextAttempt(t.Index)
	e := Event{What: Assigned, Time: now.UnixNano(), Job: j.seq, Index: t.Index, Attempt: next, Node: node, Address: address, Claim: claim}
	if m := j.book.written(t.Index).newest(); m != nil {
		image := *m
		e.Image = &image
	}
	return e,
		roost.AttemptID{Task: t, Attempt: next}, nil
}

// Start decides that the processes of an attempt run; false for old news.
func (q *Queue) Start(now time.Time, a roost.AttemptID) (Event, bool) {
	if !q.Live(a) || q.jobs[a.Task.Job.Seq].state[a.Task.Index] != roost.Starting {
		return Event{}, false
	}
	e := q.about(now, Started, a)
	e.Image = q.origin(a)
	return e, true
}

// End decides that an attempt has ended and its output is home. What is not live any more gives roost.Stale.
func (q *Queue) End(now time.Time, a roost.AttemptID, x *Exit) (Event, error) {
	if !q.Live(a) {
		return Event{}, fmt.Errorf("attempt %v: %w", a, roost.Stale)
	}
	e := q.about(now, Ended, a)
	e.Exit, e.Force = q.begun(a, q.preempted(a, x)), q.endsBroken(a)
	return e, nil
}

// Lose decides that an attempt is gone without an exit status; false for old news.
func (q *Queue) Lose(now time.Time, a roost.AttemptID, reason string) (Event, bool) {
	if !q.Live(a) {
		return Event{}, false
	}
	e := q.about(now, Lost, a)
	e.Reason, e.Force = reason, q.endsBroken(a)
	return e, true
}

// HoldTask decides that Roost itself holds one task, because of something only a user can mend.
func (q *Queue) HoldTask(now time.Time, t roost.TaskID, reason string) (Event, bool) {
	j := q.jobs[t.Job.Seq]
	if j == nil || t.Index >= len(j.state) || j.state[t.Index].Final() {
		return Event{}, false
	}
	ranges := j.whole(Target{Ranges: []Range{{t.Index, t.Index}}}).Ranges
	return Event{What: Held, Time: now.UnixNano(), Job: j.seq, Ranges: ranges, Reason: reason}, true
}

// Purge decides that a final job leaves the queue; the history has it.
func (q *Queue) Purge(now time.Time, seq uint64) (Event, bool) {
	j := q.jobs[seq]
	if j == nil || !j.final() {
		return Event{}, false
	}
	return Event{What: Purged, Time: now.UnixNano(), Job: seq}, true
}

func (q *Queue) about(now time.Time, what What, a roost.AttemptID) Event {
	return Event{What: what, Time: now.UnixNano(), Job: a.Task.Job.Seq, Index: a.Task.Index, Attempt: a.Attempt}
}
