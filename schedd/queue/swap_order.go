package queue

import (
	"container/heap"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

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
