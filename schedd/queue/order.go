package queue

import (
	"container/heap"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
)

// Order decides that two jobs change places: each starts where the other would have, as far as their age decides that (OpenPBS, qorder). Neither may have begun.
func (q *Queue) Order(now time.Time, who Submitter, a, b Target) ([]Event, error) {
	var events []Event
	for _, t := range []Target{a, b} {
		one, err := q.changeEach(now, who, t, Event{What: Ordered}, (*job).stays)
		if err != nil {
			return nil, err
		}
		if len(t.Ranges) > 0 {
			return nil, fmt.Errorf("%v: %w", t, ErrPart)
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
		events[i].Rank, events[i].Since = other.rank, other.since
		events[i].Reason = fmt.Sprintf("with job %v", other.id(q.host))
	}
	return events, nil
}

func (q *Queue) ordered(j *job, e Event) { q.place(j, e.Rank, e.Since) }

// place gives a job its place among those of its priority.
func (q *Queue) place(j *job, rank uint64, since int64) {
	j.rank, j.since = rank, since
	for _, c := range j.classes {
		if c.place >= 0 {
			heap.Fix(&c.request.classes, c.place)
			q.touch(c.request)
		}
	}
}
