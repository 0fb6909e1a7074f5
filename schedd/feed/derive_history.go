package feed

import (
	"slices"

	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// JobDrafts makes the entries of one job from all its events, as Before and After do. q
// has the job as it is now, after these events. Of the entries of the job itself there is
// only the last, which comes first.
//
// An attempt that ended before its job was altered is given what its task asks for now:
// the events do not say what the job was before.
func (d *Deriver) JobDrafts(q *queue.Queue, seq uint64, events []queue.JobEvent) []Draft {
	r := jobReplay{Deriver: NewDeriver(d.source, d.host), queue: q, tasks: map[int]*taskReplay{}}
	ended := int64(0)
	for i := range events {
		e := &events[i]
		r.apply(e)
		if canEndJob(e.Type) {
			ended = e.Time
		}
	}
	drafts := r.drafts
	if j, there := q.AccountedJob(seq); there { // first, because attempts belong to it
		drafts = append([]Draft{jobDraft(d.jobKey(q, seq), d.host, &j, ended)}, drafts...)
	}
	return drafts
}

// jobReplay derives the entries of one job from its events.
type jobReplay struct {
	*Deriver
	queue *queue.Queue
	tasks map[int]*taskReplay
}

// taskReplay is what the events so far say of a task.
type taskReplay struct {
	attempt       *queue.AccountedAttempt // the live one; nil: there is none
	images        []eventlog.CheckpointImage
	suspended     eventlog.SuspendedSpans
	byUser, owner bool // who has it suspended
}

func (r *jobReplay) apply(e *queue.JobEvent) {
	switch e.Type {
	case queue.Assigned:
		t := r.tasks[e.Index]
		if t == nil {
			t = &taskReplay{}
			r.tasks[e.Index] = t
		}
		t.assign(e)
		t.attempt.Resources, t.attempt.AppClass = r.queue.TaskResources(e.Job, e.Index)
	case eventlog.Suspended, eventlog.Resumed:
		r.eachTask(e, func(t *taskReplay) { t.suspend(e.Time, e.Type == eventlog.Suspended, t.owner) })
	default:
		if t := r.tasks[e.Index]; t != nil && t.attempt != nil {
			r.applyToTask(t, e)
		}
	}
	r.addActions(r.queue, e)
}

// eachTask calls f with each live task that an event names.
func (r *jobReplay) eachTask(e *queue.JobEvent, f func(t *taskReplay)) {
	for i, t := range r.tasks {
		named := len(e.Ranges) == 0 || slices.ContainsFunc(e.Ranges, func(r queue.IndexRange) bool {
			return r.First <= i && i <= r.Last
		})
		if named && t.attempt != nil {
			f(t)
		}
	}
}

// applyToTask takes in an event of a task with a live attempt.
func (r *jobReplay) applyToTask(t *taskReplay, e *queue.JobEvent) {
	switch e.Type {
	case queue.Started:
		t.attempt.Started = e.Time
	case eventlog.OwnerSuspended, eventlog.OwnerResumed:
		t.suspend(e.Time, t.byUser, e.Type == eventlog.OwnerSuspended)
	case queue.Checkpointed:
		if t.images = append(t.images, *e.Image); len(t.images) > eventlog.MaxImages {
			t.images = t.images[1:]
		}
	case eventlog.CheckpointBad:
		t.images = slices.DeleteFunc(t.images, func(m eventlog.CheckpointImage) bool {
			return m.Sequence == e.Image.Sequence
		})
	case queue.Ended, queue.Lost:
		if t.attempt.Attempt == e.Attempt {
			t.complete()
			r.add(accounting.FeedEntry{Attempt: attemptEntry(r.jobKey(r.queue, e.Job), e, t.attempt)})
			t.attempt = nil
		}
	}
}

func (t *taskReplay) assign(e *queue.JobEvent) {
	t.attempt = &queue.AccountedAttempt{Attempt: e.Attempt, Node: e.Node, Assigned: e.Time}
	t.suspended, t.byUser, t.owner = eventlog.SuspendedSpans{}, false, false
	if e.Image != nil {
		t.attempt.Origin = e.Image.CPUUsage
	}
}

// suspend takes in who has the task suspended since then. Only what runs can be.
func (t *taskReplay) suspend(at int64, byUser, owner bool) {
	if t.attempt.Started == 0 {
		return
	}
	if t.byUser, t.owner = byUser, owner; byUser || owner {
		t.suspended.Begin(at)
	} else {
		t.suspended.End(at)
	}
}

// complete adds to the attempt what was found out while it ran.
func (t *taskReplay) complete() {
	t.attempt.Suspended = t.suspended.Spans
	if n := len(t.images); n > 0 && t.images[n-1].Attempt == t.attempt.Attempt {
		t.attempt.Saved = t.images[n-1].CPUUsage
	}
}
