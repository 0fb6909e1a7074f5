package queue

import "github.com/roost-batch/roost/schedd/queue/jobad"

// taskClass is the tasks of a job that make the same request. It waits in its request's
// heap while a task of it is ready and may run.
type taskClass struct {
	job     *job
	request *Request
	share   *jobReady
	spec    *jobad.JobSpec
	ready   indexSet
	count   int // bits set
	open    int // tasks that are not final
	// of one that was made later: the first that is the same but for the image that it
	// wants to restore, and for when it is to run
	twin      *taskClass
	heapIndex int    // in the request's heap, -1 when not in it
	oldAd     *oldAd // the job as it was when these tasks began, which still run; nil: as it is
}

// jobReady is how many ready tasks a job contributes to one request. They are those of
// the classes that make it, and no more than the job may run.
type jobReady struct {
	request *Request
	count   int // tasks ready
	counted int // of those, counted in the request
}

// full reports whether no task of a class may start beside those of its job that are
// active. An operator's word goes past that.
func (c *taskClass) full() bool { return c.spec.Now == "" && c.job.atMaxRunning() }

// most is how many ready tasks of a job's share may count in its request.
func (s *jobReady) most(j *job) int {
	if s.request.Now {
		return s.count
	}
	return min(s.count, j.startableTasks())
}
