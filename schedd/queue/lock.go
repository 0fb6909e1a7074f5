package queue

import (
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost"
)

// POSIX has three holds: the user's, the operator's and the system's, of which the owner of a job takes away the first only. Here a task has one, and who holds it
// decides who may release it (see Release): an administrator's takes the place of the user's.

// Lock decides to hold tasks so that only who administers may release them, also those that their user holds.
func (q *Queue) Lock(now time.Time, who Submitter, t Target, reason string) ([]Event, error) {
	if !who.Admin {
		return nil, locksOnly(t)
	}
	if reason == "" {
		reason = "by " + who.User
	}
	return q.changeEach(now, who, t, Event{What: Held, Reason: reason, Force: true}, func(j *job, i int) bool { return !j.state[i].Final() && !j.locked(i) })
}

// Unlock decides to release tasks that may be locked.
func (q *Queue) Unlock(now time.Time, who Submitter, t Target) ([]Event, error) {
	if !who.Admin {
		return nil, locksOnly(t)
	}
	return q.Release(now, who, t)
}

func locksOnly(t Target) error {
	return fmt.Errorf("%v: %w: only who administers holds jobs so that their users cannot release them, and releases these", t, roost.PermissionDenied)
}

// locked reports whether somebody else than its owner holds a task, or is to when its attempt has ended.
func (j *job) locked(i int) bool {
	r := j.book.at(i)
	return r != nil && r.held && r.by != "" && r.by != j.sub.Owner
}

// anyLocked is locked of the first task of a job that is held.
func (j *job) anyLocked() bool {
	return j.counts[roost.Held] > 0 && j.locked(slices.Index(j.state, roost.Held))
}
