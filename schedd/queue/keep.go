package queue

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
)

// What is decided of checkpoints, and of freezing.

// maxFailures bounds how many reasons an attempt may leave in the log for checkpoints that nobody asked for.
const maxFailures = 10

// Kept reports whether a checkpoint of that number was recorded, of this or an earlier attempt of the task.
func (q *Queue) Kept(t roost.TaskID, sequence uint64) bool {
	j := q.jobs[t.Job.Seq]
	if j == nil {
		return false
	}
	r := j.book.written(t.Index)
	return r != nil && r.saves != nil && sequence <= r.saves.last
}

// Keep decides that an image is good: it is on disk, or on a checkpoint server. One of an attempt that is not live any more gives roost.Stale,
// one that is no newer than the last gives roost.Conflict.
func (q *Queue) Keep(now time.Time, a roost.AttemptID, m Image) (Event, error) {
	if !q.Live(a) {
		return Event{}, fmt.Errorf("checkpoint %d of attempt %v: %w", m.Sequence, a, roost.Stale)
	}
	if m.Sequence == 0 || q.Kept(a.Task, m.Sequence) {
		return Event{}, fmt.Errorf("checkpoint %d of attempt %v: %w: there is a newer one", m.Sequence, a, roost.Conflict)
	}
	e := q.about(now, Checkpointed, a)
	m.Attempt = a.Attempt
	e.Image = &m
	return e, nil
}

// Unkept decides that a checkpoint could not be taken, or not be kept. Unless somebody asked for it, the same reason is told once, and no more
// than maxFailures of them.
func (q *Queue) Unkept(now time.Time, a roost.AttemptID, reason string, asked bool) (Event, bool) {
	if !q.Live(a) {
		return Event{}, false
	}
	s := q.jobs[a.Task.Job.Seq].book.written(a.Task.Index).saves
	if !asked && s != nil && (s.failure == reason || s.failed >= maxFailures) {
		return Event{}, false
	}
	e := q.about(now, CheckpointFailed, a)
	e.Reason = reason
	return e, true
}

// Spoil decides that a kept image cannot be used; false when it is not kept.
func (q *Queue) Spoil(now time.Time, t roost.TaskID, sequence uint64, reason string) (Event, bool) {
	j := q.jobs[t.Job.Seq]
	if j == nil {
		return Event{}, false
	}
	r := j.book.written(t.Index)
	if r == nil || r.saves == nil || r.saves.image(sequence) == nil {
		return Event{}, false
	}
	image := *r.saves.image(sequence)
	return Event{
		What: CheckpointBad, Time: now.UnixNano(), Job: j.seq, Index: t.Index, Attempt: image.Attempt, Image: &image, Reason: reason,
	}, true
}

// Saved reports whether images of a job's tasks are kept.
func (q *Queue) Saved(seq uint64) bool {
	j := q.jobs[seq]
	if j == nil {
		return false
	}
	for _, r := range j.book.own.items {
		if r.newest() != nil {
			return true
		}
	}
	return false
}

// Suspend decides to freeze running tasks where they are.
func (q *Queue) Suspend(now time.Time, who Submitter, t Target, reason string) ([]Event, error) {
	if reason == "" {
		reason = "by " + who.User
	}
	return q.changeEach(now, who, t, Event{What: Suspended, Reason: reason}, func(j *job, i int) bool {
		return j.state[i] == roost.Running || j.state[i] == roost.Suspended && !j.byUser(i)
	})
}

// Thaw decides to let suspended tasks run on.
func (q *Queue) Thaw(now time.Time, who Submitter, t Target) ([]Event, error) {
	return q.changeEach(now, who, t, Event{What: Resumed}, (*job).byUser)
}

// Savable lists the live attempts of a target of which a checkpoint may be asked for.
func (q *Queue) Savable(now time.Time, who Submitter, t Target) (list []roost.AttemptID, err error) {
	running := func(s roost.TaskState) bool { return s == roost.Running || s == roost.Suspended }
	if _, err := q.change(now, who, t, Event{}, running); err != nil {
		return nil, err
	}
	j := q.jobs[t.Job.Seq]
	if j.plan.saving == nil || len(j.sub.Secret) == 0 {
		return nil, fmt.Errorf("%v: %w: its job says that no checkpoints are taken", t, roost.Conflict)
	}
	t.each(len(j.state), func(i int) {
		if running(j.state[i]) {
			list = append(list, q.attemptOf(j, i))
		}
	})
	return list, nil
}
