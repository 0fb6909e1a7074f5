package queue

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

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

// firstHeldLocked is locked of the first task of a job that is held.
func (j *job) firstHeldLocked() bool {
	return j.counts[roost.Held] > 0 && j.isLocked(indexOfState(j.state, roost.Held))
}
