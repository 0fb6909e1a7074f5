package queue

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
)

// Hold decides to hold tasks. What runs is ended first; no new attempt starts from then on (P8).
func (q *Queue) Hold(now time.Time, who Submitter, t Target, reason string) ([]Event, error) {
	if reason == "" {
		reason = "held by " + who.User
	}
	return q.act(who, t, Event{What: Held, Time: now.UnixNano(), Reason: reason}, func(j *job, i int) bool {
		s := j.state[i]
		return !s.Final() && s != roost.Held && !(s.Active() && j.records[i].want != roost.Running)
	})
}

// Release decides to let held tasks go on.
func (q *Queue) Release(now time.Time, who Submitter, t Target) ([]Event, error) {
	return q.act(who, t, Event{What: Released, Time: now.UnixNano()}, func(j *job, i int) bool {
		return j.state[i] == roost.Held || j.state[i].Active() && j.records[i].want == roost.Held
	})
}

// Remove decides to take tasks out. What runs is ended first, with force without notice.
func (q *Queue) Remove(now time.Time, who Submitter, t Target, reason string, force bool) ([]Event, error) {
	if reason == "" {
		reason = "removed by " + who.User
	}
	return q.act(who, t, Event{What: RemovalRequested, Time: now.UnixNano(), Reason: reason, Force: force}, func(j *job, i int) bool {
		return !j.state[i].Final()
	})
}

// Retry decides to run tasks again that failed or were removed.
func (q *Queue) Retry(now time.Time, who Submitter, t Target) ([]Event, error) {
	return q.act(who, t, Event{What: Retried, Time: now.UnixNano()}, (*job).retryable)
}

// act decides on an event for the tasks of a target, of which at least one must be fit for it.
func (q *Queue) act(who Submitter, t Target, e Event, fit func(j *job, i int) bool) ([]Event, error) {
	if t.Err != nil {
		return nil, t.Err
	}
	j := q.jobs[t.Job.Seq]
	if j == nil || t.Job.Host != q.host {
		return nil, fmt.Errorf("%v: %w: it is not in the queue", t, roost.NotFound)
	}
	if !who.Admin && who.UID != 0 && who.UID != j.sub.UID {
		return nil, fmt.Errorf("%v: %w: it belongs to %s", t, roost.PermissionDenied, j.sub.Owner)
	}
	if i := t.beyond(len(j.state)); i >= 0 {
		return nil, fmt.Errorf("%v: %w: it has no task %d", t, roost.NotFound, i)
	}
	any, ended := false, true
	j.each(t.Ranges, func(i int) {
		any = any || fit(j, i)
		ended = ended && j.state[i].Final()
	})
	switch {
	case !any && ended && e.What != Retried:
		return nil, fmt.Errorf("%v: %w", t, roost.Finished)
	case !any:
		return nil, fmt.Errorf("%v: %w: none of its tasks can be %v", t, roost.Conflict, e.What)
	}
	e.Job, e.Ranges, e.By = j.seq, t.Ranges, who.User
	return []Event{e}, nil
}

// HoldTask decides that Roost itself holds a task, for one of the Hold codes.
func (q *Queue) HoldTask(now time.Time, t roost.TaskID, code int, reason string) (Event, error) {
	j, err := q.task(t)
	if err == nil && j.state[t.Index].Final() {
		err = fmt.Errorf("%v: %w", t, roost.Finished)
	}
	return Event{What: Held, Time: now.UnixNano(), Job: t.Job.Seq, Ranges: []Range{{t.Index, t.Index}}, Reason: reason, Code: code}, err
}

// Assign decides that the next attempt of a task goes to a claim. The task must be ready.
func (q *Queue) Assign(now time.Time, t roost.TaskID, node, address string, claim uint64) (Event, roost.AttemptID, error) {
	j, err := q.task(t)
	if err != nil {
		return Event{}, roost.AttemptID{}, err
	}
	if s := j.state[t.Index]; s != roost.Idle || j.full() {
		return Event{}, roost.AttemptID{}, fmt.Errorf("%v: %w: it is %v, and %d tasks of its job are active", t, roost.Conflict, s, j.active)
	}
	a := roost.AttemptID{Task: t, Attempt: 1}
	if r := j.records[t.Index]; r != nil {
		a.Attempt = r.attempt + 1
	}
	e := about(now, Assigned, a)
	e.Node, e.Address, e.Claim = node, address, claim
	return e, a, nil
}

// Start decides that the processes of an attempt run; false when that is known, or the attempt is not live.
func (q *Queue) Start(now time.Time, a roost.AttemptID) (Event, bool) {
	_, r := q.find(a)
	return about(now, Started, a), r != nil && r.started == 0
}

// End decides that an attempt has ended. One that is not live any more is refused with roost.Stale.
func (q *Queue) End(now time.Time, a roost.AttemptID, x *Exit) (Event, error) {
	if _, r := q.find(a); r == nil {
		return Event{}, fmt.Errorf("%v: %w: its end was recorded, or a later attempt has begun", a, roost.Stale)
	}
	e := about(now, Ended, a)
	e.Exit = x
	return e, nil
}

// Lose decides that an attempt is gone without an exit status; false when it is not live any more.
func (q *Queue) Lose(now time.Time, a roost.AttemptID, reason string) (Event, bool) {
	_, r := q.find(a)
	e := about(now, Lost, a)
	e.Reason = reason
	return e, r != nil
}

// Purge decides that a job leaves the queue; its record must be in the history. False when it is not there or not final (any more).
func (q *Queue) Purge(now time.Time, id roost.JobID) (Event, bool) {
	j := q.jobs[id.Seq]
	return Event{What: Purged, Time: now.UnixNano(), Job: id.Seq}, j != nil && j.final()
}

func about(now time.Time, what What, a roost.AttemptID) Event {
	return Event{What: what, Time: now.UnixNano(), Job: a.Task.Job.Seq, Index: a.Task.Index, Attempt: a.Attempt}
}

// task finds the job of a task.
func (q *Queue) task(t roost.TaskID) (*job, error) {
	j := q.jobs[t.Job.Seq]
	if j == nil || t.Job.Host != q.host || t.Index < 0 || t.Index >= len(j.state) {
		return nil, fmt.Errorf("%v: %w: it is not in the queue", t, roost.NotFound)
	}
	return j, nil
}

func sortedSet(set map[uint64]struct{}) []uint64 { return slices.Sorted(maps.Keys(set)) }
