package queue

import "github.com/roost-batch/roost"

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
