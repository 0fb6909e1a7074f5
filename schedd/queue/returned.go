package queue

import (
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost"
)

// Return decides to run failed and removed tasks again of a job that is in the history: it comes back into the queue with all that is known of it, and its
// next attempts have the next numbers. past holds that job and nothing else; it is of no use afterwards.
func (q *Queue) Return(now time.Time, who Submitter, past *Queue, t Target, limits Limits) ([]Event, error) {
	events, err := past.Retry(now, who, t)
	if err != nil {
		return nil, err
	}
	j := past.jobs[t.Job.Seq]
	tasks := 0
	for _, e := range events {
		retried := Target{Job: t.Job, Ranges: e.Ranges}
		retried.each(len(j.state), func(i int) {
			if j.state[i].Final() {
				tasks++
			}
		})
	}
	owner := Submitter{User: j.sub.Owner, UID: j.sub.UID, Admin: who.Admin}
	if err := q.checkOpen(owner, tasks, limits); err != nil {
		return nil, err
	}
	if err := q.dropMet(j, limits); err != nil {
		return nil, fmt.Errorf("%v: %w", t, err)
	}
	snapshot, _ := past.Snapshot(j.seq)
	returned := Event{What: Returned, Time: now.UnixNano(), Job: j.seq, By: who.User, Snapshot: snapshot}
	return append([]Event{returned}, events...), nil
}

// dropMet takes out of what a job of the history still waited for what has come since. What cannot come any more is an error.
func (q *Queue) dropMet(j *job, limits Limits) error {
	var left []Wait
	for _, w := range j.waits {
		if !w.Type.holds() {
			continue
		}
		met, dead, err := q.resolve(w, limits)
		if err != nil || dead {
			return fmt.Errorf("%w: it waited for job %d, which has ended otherwise, or is not known any more; submit it anew, or run that one again first", roost.Conflict, w.Job)
		}
		if !met {
			left = append(left, w)
		}
	}
	j.waits = slices.Clip(left)
	return nil
}

// returned takes a job in that was in the history, which changes the state of no task. Its images went when it left the queue.
func (q *Queue) returned(e Event) {
	changes := q.changes
	if err := q.Restore(e.Snapshot); err != nil {
		panic(fmt.Sprintf("queue: job %d comes back: %v", e.Job, err))
	}
	q.changes = changes
	j, dropped := q.jobs[e.Job], q.dropped
	for i := range j.state {
		q.dropAll(j, i)
	}
	q.dropped = dropped
	q.changed[j.seq], q.unsaved[j.seq] = true, true
	q.note(j)
}
