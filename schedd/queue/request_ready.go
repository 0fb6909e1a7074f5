package queue

import (
	"container/heap"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
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

// HoldInfeasible decides that a stream job is held for which the cell found no room, with
// what is missing. A service that waits for ever serves nobody, and whoever submitted it
// thinks that it does. What has run before is not refused: it waits for its place as all
// others do, for it is to run again after a failure with no hand laid on. A job with a
// service block waits too: it is to run as soon as that is possible.
func (q *requestIndex) HoldInfeasible(now time.Time, id RequestID, missing string) []eventlog.JobEvent {
	r := q.requests[id]
	if r == nil || r.Class != roost.AppStream || r.Service != nil || len(r.classes) == 0 {
		return nil
	}
	j := r.classes[0].job
	if j.firstStarted != 0 || j.active > 0 || j.counts[roost.Idle] == 0 {
		return nil
	}
	job := j.id(q.host)
	return []eventlog.JobEvent{{Type: eventlog.Held, Time: now.UnixNano(), Job: j.seq,
		Reason: fmt.Sprintf("refused: %s; to try again: roost release %v", missing, job)}}
}

// DenyRun decides that the tasks of a request to run now take their turn again. No
// machine can take them; why says what is missing. It returns nothing for any other
// request.
func (q *requestIndex) DenyRun(now time.Time, id RequestID, why string) []eventlog.JobEvent {
	r := q.requests[id]
	if r == nil || !r.Now || len(r.classes) == 0 {
		return nil
	}
	j := r.classes[0].job
	var tasks []eventlog.IndexRange
	for i, s := range j.state {
		if s == roost.Idle && j.class(i).request == r {
			tasks = appendIndex(tasks, i)
		}
	}
	if len(tasks) == 0 {
		return nil
	}
	return []eventlog.JobEvent{{Type: eventlog.RunDenied, Time: now.UnixNano(), Job: j.seq,
		Ranges: j.wholeGangs(TaskSelector{Ranges: tasks}).Ranges, Reason: why}}
}
