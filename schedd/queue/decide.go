package queue

import (
	"container/heap"
	"errors"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// taskDecisions decides what users ask for of jobs and tasks.
type taskDecisions struct{ *jobTable }

// HoldTasks decides to hold tasks. What runs is to be ended first; no new attempt starts
// from then on (P8).
func (q taskDecisions) HoldTasks(now time.Time, who CallerIdentity, t TaskSelector,
	reason string) ([]eventlog.JobEvent, error) {
	if reason == "" {
		reason = "by " + q.requester(who, t)
	}
	return q.decideChange(now, who, t, eventlog.JobEvent{Type: eventlog.Held, Reason: reason},
		func(s roost.TaskState) bool {
			return !s.IsFinal() && s != roost.Held
		})
}

// ReleaseTasks decides to let held tasks go on. What somebody else holds than the owner,
// who is an administrator then, only an administrator releases (POSIX XCU 3.2.2,
// Hold_Types).
func (q taskDecisions) ReleaseTasks(now time.Time, who CallerIdentity, t TaskSelector) ([]eventlog.JobEvent, error) {
	if j := q.jobs[t.Job.Seq]; j != nil && !who.Admin {
		by := ""
		j.wholeGangs(t).eachIndex(len(j.state), func(i int) {
			if j.state[i].IsFinal() || by != "" {
				return
			}
			if r := j.records.Get(i); r != nil && r.HoldWanted && r.RequestedBy != j.submission.owner {
				by = r.RequestedBy
			}
		})
		if by != "" && who.Owns(j.submission.owner, j.submission.uid) {
			return nil, fmt.Errorf("%v: %w: %s holds it, and only an administrator may let it go on", t,
				roost.PermissionDenied, by)
		}
	}
	return q.decideChange(now, who, t, eventlog.JobEvent{Type: eventlog.Released}, func(s roost.TaskState) bool {
		return s == roost.Held || s.IsActive()
	})
}

// RemoveTasks decides to take tasks out. What runs is ended first.
func (q taskDecisions) RemoveTasks(now time.Time, who CallerIdentity, t TaskSelector, reason string,
	force bool) ([]eventlog.JobEvent, error) {
	if reason == "" {
		reason = "by " + q.requester(who, t)
	}
	events, err := q.decideChange(now, who, t, eventlog.JobEvent{Type: eventlog.RemovalRequested, Reason: reason,
		Force: force},
		func(s roost.TaskState) bool {
			return !s.IsFinal()
		})
	if j := q.jobs[t.Job.Seq]; errors.Is(err, roost.Finished) && len(t.Ranges) > 0 && !j.isFinal() &&
		!j.endedSubjob(t) {
		return nil, nil // a range stands for those that there are, and of those none is left (OpenPBS)
	}
	if err == nil {
		events = append(q.removeInside(now, who, t, force), events...)
	}
	return events, err
}

// RetryTasks decides to run failed and removed tasks again.
func (q taskDecisions) RetryTasks(now time.Time, who CallerIdentity, t TaskSelector) ([]eventlog.JobEvent, error) {
	j := q.jobs[t.Job.Seq]
	events, err := q.decideChange(now, who, t, eventlog.JobEvent{Type: eventlog.Retried}, roost.TaskState.IsFinal)
	if err != nil || j == nil {
		return events, err
	}
	if j.spec.MPIGang {
		return j.retryMPIGangs(t, events)
	}
	var failed []eventlog.IndexRange
	t.eachIndex(len(j.state), func(i int) {
		if (serviceTasks{j}).isSurplus(i) {
			return
		}
		if j.state[i] == roost.Removed || j.state[i] == roost.Completed && !j.records.HasSucceeded(i) {
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

func noneFailed(t TaskSelector) error { return fmt.Errorf("%v: %w", t, ErrNoneFailed) }

// decideChange decides on an event for the tasks of a target. At least one of them must
// be in a state where the event makes sense.
func (q taskDecisions) decideChange(now time.Time, who CallerIdentity, t TaskSelector, e eventlog.JobEvent,
	sensible func(roost.TaskState) bool) ([]eventlog.JobEvent, error) {
	return q.decideEach(now, who, t, e, func(j *job, i int) bool { return sensible(j.state[i]) })
}

// decideEach is change where more than its state says whether it makes sense for a task.
func (q taskDecisions) decideEach(now time.Time, who CallerIdentity, t TaskSelector, e eventlog.JobEvent,
	sensible func(j *job, i int) bool) ([]eventlog.JobEvent, error) {
	j := q.jobs[t.Job.Seq]
	if j == nil {
		return nil, fmt.Errorf("%v: %w: there is no such job", t, roost.NotFound)
	}
	if err := who.CheckOwner(t, j.submission.owner, j.submission.uid); err != nil {
		return nil, err
	}
	if bad, ok := t.firstMissingIndex(len(j.state)); ok {
		return nil, fmt.Errorf("%v: %w: the job has %d tasks, and none of number %d", t, ErrNoSubjob, len(j.state), bad)
	}
	t = j.wholeGangs(t)
	any, final := false, true
	t.eachIndex(len(j.state), func(i int) {
		any = any || sensible(j, i)
		final = final && j.state[i].IsFinal()
	})
	switch {
	case !any && final && e.Type != eventlog.Retried && j.endedSubjob(t):
		return nil, fmt.Errorf("%v: %w", t, ErrEndedSubjob)
	case !any && final && e.Type != eventlog.Retried:
		return nil, fmt.Errorf("%v: %w", t, roost.Finished)
	case !any:
		return nil, fmt.Errorf("%v: %w: it is %s", t, roost.Conflict, q.describeState(j, t))
	}
	e.Time, e.Job, e.RequestedBy, e.Ranges = now.UnixNano(), j.seq, q.requester(who, t), t.Ranges
	return []eventlog.JobEvent{e}, nil
}

// requester names who asked for a change of a target, for its events.
func (q taskDecisions) requester(who CallerIdentity, t TaskSelector) string {
	if j := q.jobs[t.Job.Seq]; j != nil {
		return who.requester(j.submission.owner, j.submission.uid)
	}
	return who.User
}

// describeState names the state of a target's first task.
func (q taskDecisions) describeState(j *job, t TaskSelector) string {
	i := 0
	if len(t.Ranges) > 0 {
		i = t.Ranges[0].First
	}
	if j.suspendedByOwner(i) {
		return j.state[i].String() + ": " + j.stateReason(i)
	}
	return j.state[i].String()
}

// POSIX has three holds: the user's, the operator's and the system's, of which the owner
// of a job takes away the first only. Here a task has one, and who holds it decides who
// may release it (see ReleaseTasks): an administrator's takes the place of the user's.

// LockTasks decides to hold tasks so that only who administers may release them, also
// those that their user holds.
func (q taskDecisions) LockTasks(now time.Time, who CallerIdentity, t TaskSelector,
	reason string) ([]eventlog.JobEvent, error) {
	if !who.Admin {
		return nil, lockAdminError(t)
	}
	if reason == "" {
		reason = "by " + q.requester(who, t)
	}
	return q.decideEach(now, who, t, eventlog.JobEvent{Type: eventlog.Held, Reason: reason, Force: true},
		func(j *job, i int) bool {
			return !j.state[i].IsFinal() && !j.isLocked(i)
		})
}

// UnlockTasks decides to release tasks that may be locked.
func (q taskDecisions) UnlockTasks(now time.Time, who CallerIdentity, t TaskSelector) ([]eventlog.JobEvent, error) {
	if !who.Admin {
		return nil, lockAdminError(t)
	}
	return q.ReleaseTasks(now, who, t)
}

func lockAdminError(t TaskSelector) error {
	return fmt.Errorf("%v: %w: only who administers holds jobs so that their users cannot release them, and "+
		"releases these", t, roost.PermissionDenied)
}

// isLocked reports whether somebody else than its owner holds a task, or is to when its
// attempt has ended.
func (j *job) isLocked(i int) bool {
	r := j.records.Get(i)
	return r != nil && r.HoldWanted && r.RequestedBy != "" && r.RequestedBy != j.submission.owner
}

// heldBy returns who holds a task: "user", "operator" (somebody else than its owner) or
// "roost". It is empty for a task that is not held.
func heldBy(j *job, i int) string {
	r := j.records.Get(i)
	switch {
	case j.state[i] != roost.Held:
		return ""
	case r != nil && r.RequestedBy != "" && r.RequestedBy != j.submission.owner:
		return "operator"
	case r != nil && r.RequestedBy != "", j.spec.HoldOnSubmit && (r == nil || r.HoldReason == ""):
		return "user"
	}
	return "roost"
}

// firstHeldLocked is locked of the first task of a job that is held.
func (j *job) firstHeldLocked() bool {
	return j.counts[roost.Held] > 0 && j.isLocked(indexOfState(j.state, roost.Held))
}

// SwapOrder decides that two jobs change places in the order by age (OpenPBS, qorder).
// Each starts where the other would have. Neither may have begun.
func (q taskDecisions) SwapOrder(now time.Time, who CallerIdentity, a, b TaskSelector) ([]eventlog.JobEvent, error) {
	var events []eventlog.JobEvent
	for _, t := range []TaskSelector{a, b} {
		one, err := q.decideEach(now, who, t, eventlog.JobEvent{Type: eventlog.Ordered}, (*job).remainsQueued)
		if err != nil {
			return nil, err
		}
		if len(t.Ranges) > 0 {
			return nil, fmt.Errorf("%v: %w", t, ErrWholeJobOnly)
		}
		if q.jobs[t.Job.Seq].active > 0 {
			return nil, fmt.Errorf("%v: %w: it has begun", t, roost.Conflict)
		}
		events = append(events, one...)
	}
	if a.Job == b.Job {
		return nil, nil
	}
	first, second := q.jobs[a.Job.Seq], q.jobs[b.Job.Seq]
	for i, other := range []*job{second, first} {
		events[i].OrderRank, events[i].OrderTime = other.orderRank, other.orderTime
		events[i].Reason = fmt.Sprintf("with job %v", other.id(q.host))
	}
	return events, nil
}

func (q *Queue) applyOrdered(j *job, e eventlog.JobEvent) {
	q.setOrderRank(j, e.OrderRank, e.OrderTime)
}

// setOrderRank gives a job its place among those of its priority.
func (q *requestIndex) setOrderRank(j *job, rank uint64, since int64) {
	j.orderRank, j.orderTime = rank, since
	for _, c := range j.classes {
		if c.heapIndex >= 0 {
			heap.Fix(&c.request.classes, c.heapIndex)
			q.markDirty(c.request)
		}
	}
}
