package queue

import (
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// ReturnFromHistory decides to run failed and removed tasks again of a job that is in the
// history. It comes back into the queue with all that is known of it, and its next
// attempts have the next numbers. past holds that job and nothing else; it is of no use
// afterwards.
func (q *submissionIndex) ReturnFromHistory(now time.Time, who CallerIdentity, past *Queue, t TaskSelector,
	limits SubmitLimits) ([]eventlog.JobEvent, error) {
	events, err := past.RetryTasks(now, who, t)
	if err != nil {
		return nil, err
	}
	j := past.jobs[t.Job.Seq]
	tasks := 0
	for _, e := range events {
		retried := TaskSelector{Job: t.Job, Ranges: e.Ranges}
		retried.eachIndex(len(j.state), func(i int) {
			if j.state[i].IsFinal() {
				tasks++
			}
		})
	}
	owner := CallerIdentity{User: j.submission.owner, UID: j.submission.uid, Admin: who.Admin}
	if err := q.checkOpenLimit(owner, tasks, limits); err != nil {
		return nil, err
	}
	if err := q.dropResolved(j, limits); err != nil {
		return nil, fmt.Errorf("%v: %w", t, err)
	}
	snapshot, _ := past.Snapshot(j.seq)
	returned := eventlog.JobEvent{Type: eventlog.Returned, Time: now.UnixNano(), Job: j.seq,
		RequestedBy: who.requester(j.submission.owner, j.submission.uid), Snapshot: snapshot}
	return append([]eventlog.JobEvent{returned}, events...), nil
}

// dropResolved takes out of what a job of the history still waited for what has come
// since. What cannot come any more is an error.
func (q *submissionIndex) dropResolved(j *job, limits SubmitLimits) error {
	var left []eventlog.JobDependency
	for _, w := range j.dependencies {
		if !w.Type.Blocks() {
			continue
		}
		met, dead, err := q.dependencyState(w, limits)
		if err != nil || dead {
			return fmt.Errorf("%w: it waited for job %d, which has ended otherwise, or is not known any more; submit "+
				"it anew, or run that one again first", roost.Conflict, w.Job)
		}
		if !met {
			left = append(left, w)
		}
	}
	j.ownExtras().dependencies = slices.Clip(left)
	return nil
}

// applyReturned takes a job in that was in the history, which changes the state of no
// task. Its images went when it left the queue.
func (q *Queue) applyReturned(e eventlog.JobEvent) {
	changes := q.changes
	if err := q.RestoreSnapshot(e.Snapshot); err != nil {
		panic(fmt.Sprintf("queue: job %d comes back: %v", e.Job, err))
	}
	q.changes = changes
	j, dropped := q.jobs[e.Job], q.droppedImages
	for i := range j.state {
		q.dropAllImages(j, i)
	}
	q.droppedImages = dropped
	q.changedJobs[j.seq], q.unsavedJobs[j.seq] = true, true
	q.markChanged(j)
}
