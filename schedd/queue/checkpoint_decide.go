package queue

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// What is decided of checkpoints, and of freezing.

// maxJobFailures bounds how many reasons an attempt may leave in the log for checkpoints
// that nobody asked for.
const maxJobFailures = 10

// HasCheckpoint reports whether a checkpoint of that number was recorded, of this or an
// earlier attempt of the task.
func (q *jobTable) HasCheckpoint(t roost.TaskID, sequence uint64) bool {
	j := q.jobs[t.Job.Seq]
	if j == nil {
		return false
	}
	r := j.records.Own(t.Index)
	return r != nil && r.Checkpoints != nil && sequence <= r.Checkpoints.LastSequence
}

// RecordCheckpoint decides that an image is good: it is on disk, or on a checkpoint
// server. One of an attempt that is not live any more gives roost.Stale, one that is no
// newer than the last gives roost.Conflict.
func (q attemptDecisions) RecordCheckpoint(now time.Time, a roost.AttemptID,
	m eventlog.CheckpointImage) (eventlog.JobEvent, error) {
	if !q.IsLive(a) {
		return eventlog.JobEvent{}, fmt.Errorf("checkpoint %d of attempt %v: %w", m.Sequence, a, roost.Stale)
	}
	if m.Sequence == 0 || q.HasCheckpoint(a.Task, m.Sequence) {
		return eventlog.JobEvent{}, fmt.Errorf("checkpoint %d of attempt %v: %w: there is a newer one", m.Sequence,
			a, roost.Conflict)
	}
	e := eventAbout(now, eventlog.Checkpointed, a)
	m.Attempt = a.Attempt
	e.Image = &m
	return e, nil
}

// RecordCheckpointFailure decides that a checkpoint could not be taken, or not be kept.
// Unless somebody asked for it, the same reason is told once, and no more than
// maxJobFailures of them.
func (q attemptDecisions) RecordCheckpointFailure(now time.Time, a roost.AttemptID, reason string,
	asked bool) (eventlog.JobEvent, bool) {
	if !q.IsLive(a) {
		return eventlog.JobEvent{}, false
	}
	s := q.jobs[a.Task.Job.Seq].records.Own(a.Task.Index).Checkpoints
	if !asked && s != nil && (s.LastFailure == reason || s.Failures >= maxJobFailures) {
		return eventlog.JobEvent{}, false
	}
	e := eventAbout(now, eventlog.CheckpointFailed, a)
	e.Reason = reason
	return e, true
}

// RejectCheckpoint decides that a kept image cannot be used; false when it is not kept.
func (q attemptDecisions) RejectCheckpoint(now time.Time, t roost.TaskID, sequence uint64,
	reason string) (eventlog.JobEvent, bool) {
	j := q.jobs[t.Job.Seq]
	if j == nil {
		return eventlog.JobEvent{}, false
	}
	r := j.records.Own(t.Index)
	if r == nil || r.Checkpoints == nil || r.Checkpoints.FindImage(sequence) == nil {
		return eventlog.JobEvent{}, false
	}
	image := *r.Checkpoints.FindImage(sequence)
	return eventlog.JobEvent{
		Type: eventlog.CheckpointBad, Time: now.UnixNano(), Job: j.seq, Index: t.Index, Attempt: image.Attempt,
		Image:  &image,
		Reason: reason,
	}, true
}

// RejectOrigin decides that no machine can use the image that an attempt went on from.
// The result is false when the image is not stored.
func (q attemptDecisions) RejectOrigin(now time.Time, a roost.AttemptID,
	reason string) (eventlog.JobEvent, bool) {
	if !q.IsLive(a) {
		return eventlog.JobEvent{}, false
	}
	m := q.restoreImage(a)
	if m == nil {
		return eventlog.JobEvent{}, false
	}
	return q.RejectCheckpoint(now, a.Task, m.Sequence, reason)
}

// HasImages reports whether images of a job's tasks are kept.
func (q *jobTable) HasImages(seq uint64) bool {
	j := q.jobs[seq]
	if j == nil {
		return false
	}
	return j.records.HasImages()
}

// CheckpointTargets lists the live attempts of a target of which a checkpoint may be
// asked for.
func (q taskDecisions) CheckpointTargets(now time.Time, who CallerIdentity,
	t TaskSelector) (list []roost.AttemptID, err error) {
	running := func(s roost.TaskState) bool { return s == roost.Running || s == roost.Suspended }
	if _, err := q.decideChange(now, who, t, eventlog.JobEvent{}, running); err != nil {
		return nil, err
	}
	j := q.jobs[t.Job.Seq]
	if j.spec.Checkpoints == nil || len(j.texts.secret()) == 0 {
		return nil, fmt.Errorf("%v: %w: its job says that no checkpoints are taken", t, roost.Conflict)
	}
	t.eachIndex(len(j.state), func(i int) {
		if running(j.state[i]) {
			list = append(list, q.attemptOf(j, i))
		}
	})
	return list, nil
}
