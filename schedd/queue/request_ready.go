package queue

import (
	"container/heap"

	"github.com/roost-batch/roost"
)

// updateHeap puts a class into its request's heap, or takes it out, as it has become.
func (q *requestIndex) updateHeap(c *taskClass) {
	want := c.count > 0 && !c.full()
	switch {
	case want && c.heapIndex < 0:
		heap.Push(&c.request.classes, c)
	case !want && c.heapIndex >= 0:
		heap.Remove(&c.request.classes, c.heapIndex)
	default:
		return
	}
	q.markDirty(c.request)
}

// updateReady counts the ready tasks of a job's share in its request: as many as could
// start. A job whose tasks make several requests may run some of any of them, and so
// counts its whole room in each.
func (q *requestIndex) updateReady(j *job, s *jobReady) {
	if reported := s.most(j); reported != s.counted {
		s.request.Ready += reported - s.counted
		s.counted = reported
		q.markDirty(s.request)
	}
}

// setReady changes whether a task is among the ready of its class.
func (q *requestIndex) setReady(j *job, i int, ready bool) {
	c := j.class(i)
	if c.ready.Has(i) == ready {
		return
	}
	step := 1
	if ready {
		c.ready.Add(i)
	} else {
		c.ready.Remove(i)
		step = -1
	}
	c.count += step
	c.share.count += step
	if q.readyDeferred != j {
		q.updateHeap(c)
		q.updateReady(j, c.share)
	}
}

// updateJobReady settles all classes and shares of a job.
func (q *requestIndex) updateJobReady(j *job) {
	for _, c := range j.classes {
		q.updateHeap(c)
	}
	for _, s := range j.shares {
		q.updateReady(j, s)
	}
}

// batchReady has the ready tasks of a job counted once, when f has changed any number of
// them.
func (q *requestIndex) batchReady(j *job, f func()) {
	outer := q.readyDeferred
	q.readyDeferred = j
	f()
	q.readyDeferred = outer
	q.updateJobReady(j)
}

// updateMaxRunning is for when a job's limit of active tasks may have come or gone.
func (q *requestIndex) updateMaxRunning(j *job) {
	if j.spec.MaxRunning > 0 {
		q.updateJobReady(j)
	}
}

// makeAllReady makes every task of a new job ready.
func (q *requestIndex) makeAllReady(j *job) {
	if len(j.classes) > 1 {
		q.batchReady(j, func() {
			for i := range j.state {
				q.setReady(j, i, true)
			}
		})
		return
	}
	c, n := j.classes[0], len(j.state)
	c.ready.Fill(n)
	c.count, c.share.count = n, n
	q.updateHeap(c)
	q.updateReady(j, c.share)
}

// NextTask returns the task of a request that should run next. There is none while it
// waits for others to start with.
func (q *requestIndex) NextTask(id RequestID) (roost.TaskID, bool) { return q.NextTaskExcept(id, nil) }

// maxSkippedTasks bounds how many ready tasks are looked at for one that is not skipped.
const maxSkippedTasks = 256

// NextTaskExcept is Next without the tasks for which skip is true; a nil skip skips none.
func (q *requestIndex) NextTaskExcept(id RequestID, skip func(roost.TaskID) bool) (roost.TaskID, bool) {
	r := q.requests[id]
	if r == nil || len(r.classes) == 0 {
		return roost.TaskID{}, false
	}
	c := r.classes[0]
	if size, ok := q.NextGang(id); ok {
		if size != 1 {
			return roost.TaskID{}, false
		}
		return c.job.id(q.host).Task(c.job.nextGang(r)[0]), true // it is what is left of its gang
	}
	if skip == nil {
		return c.job.id(q.host).Task(c.ready.First()), true
	}
	looked := 0
	for _, c := range r.classes {
		for i := c.ready.First(); i >= 0 && looked < maxSkippedTasks; i = c.ready.After(i) {
			if t := c.job.id(q.host).Task(i); !skip(t) {
				return t, true
			}
			looked++
		}
	}
	return roost.TaskID{}, false
}

// NextJob is the job whose task, or gang, a claim of the request would start next.
func (q *requestIndex) NextJob(id RequestID) (roost.JobID, bool) {
	r := q.requests[id]
	if r == nil || len(r.classes) == 0 {
		return roost.JobID{}, false
	}
	return r.classes[0].job.id(q.host), true
}

// ReadyJobs lists the jobs that have tasks in a request that could start, in no order.
func (q *requestIndex) ReadyJobs(id RequestID) (seqs []uint64) {
	if r := q.requests[id]; r != nil {
		for _, c := range r.classes {
			seqs = append(seqs, c.job.seq)
		}
	}
	return seqs
}
