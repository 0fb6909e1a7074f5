package queue

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/adtext"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// AccountedJob is what accounting stores of a job, beyond what is in its ad.
type AccountedJob struct {
	Seq       uint64
	Name      string
	Owner     string
	UID, GID  uint32
	Group     string
	Band      roost.PriorityBand
	Queue     string
	Array     bool
	Tasks     int // as its user counts them
	Resources roost.Resources
	Walltime  int64         // nanoseconds; 0: no limit
	Ad        adtext.Packed // it may be read by another goroutine
	Submitted int64         // unix nanoseconds
	Eligible  int64         // since when it could run, unix nanoseconds; 0: it could not
	Final     bool          // it has ended
	Removed   bool          // a task of it was removed
}

// AccountedJob returns what accounting stores of a job in the queue.
func (q *jobTable) AccountedJob(seq uint64) (a AccountedJob, ok bool) {
	j := q.jobs[seq]
	if j == nil {
		return a, false
	}
	a = AccountedJob{
		Seq: seq, Name: j.texts.name(), Owner: j.submission.owner, UID: j.submission.uid, GID: j.submission.gid,
		Group: j.spec.Group, Band: j.spec.Band, Queue: j.spec.Queue, Array: j.spec.Array, Tasks: len(j.state),
		Resources: j.classes[0].spec.Resources, Walltime: int64(j.spec.Walltime), Ad: j.ad, Submitted: j.submitted,
		Eligible: j.eligible.Since, Final: j.isFinal(), Removed: j.counts[roost.Removed] > 0,
	}
	if n := j.tasksPerIndex(); n > 1 {
		a.Tasks /= n
	}
	return a, true
}

// JobPhase is what accounting follows of a job while it is in the queue.
type JobPhase struct {
	Submitted int64 // unix nanoseconds
	Eligible  int64 // as in AccountedJob
	Final     bool
}

// JobPhase returns the phase of a job; the zero value for one that is not in the queue.
func (q *jobTable) JobPhase(seq uint64) JobPhase {
	if j := q.jobs[seq]; j != nil {
		return JobPhase{j.submitted, j.eligible.Since, j.isFinal()}
	}
	return JobPhase{}
}

// AccountedAttempt is what accounting stores of an attempt, beyond how it ended.
type AccountedAttempt struct {
	Attempt   roost.AttemptNumber
	Node      string
	AppClass  string
	Assigned  int64 // unix nanoseconds
	Started   int64 // likewise; 0: it has not
	Resources roost.Resources
	Suspended []eventlog.SuspendedSpan
	Origin    eventlog.CPUUsage // what was in the image that it went on from
	Saved     eventlog.CPUUsage // what is in its own newest image; zero: it has none
}

// AccountedAttempt returns the live attempt of a task.
func (q *jobTable) AccountedAttempt(seq uint64, index int) (a AccountedAttempt, live bool) {
	j := q.jobs[seq]
	if j == nil {
		return a, false
	}
	r := j.records.Own(index)
	if r == nil || !r.Live {
		return a, false
	}
	a = AccountedAttempt{Attempt: r.Attempt, Node: r.Node, Assigned: r.Assigned, Started: r.Started,
		Suspended: r.Suspended.Clone()}
	a.Resources, a.AppClass = taskResources(j, index)
	if r.Checkpoints != nil {
		a.Origin = r.Checkpoints.OriginUsage
	}
	if image := r.NewestImage(); image != nil && image.Attempt == r.Attempt {
		a.Saved = image.CPUUsage
	}
	return a, true
}

// LiveAttempts returns the live attempts of a job by the index of their task.
func (q *jobTable) LiveAttempts(seq uint64) map[int]AccountedAttempt {
	j := q.jobs[seq]
	if j == nil {
		return nil
	}
	var all map[int]AccountedAttempt
	for i := range j.state {
		if a, live := q.AccountedAttempt(seq, i); live {
			if all == nil {
				all = map[int]AccountedAttempt{}
			}
			all[i] = a
		}
	}
	return all
}

// FirstWaitingTask returns the first task of a job that neither runs nor has ended.
func (q *jobTable) FirstWaitingTask(seq uint64) (index int, waits bool) {
	j := q.jobs[seq]
	if j == nil || j.isFinal() {
		return 0, false
	}
	for i, state := range j.state {
		if !state.IsFinal() && !state.IsActive() {
			return i, true
		}
	}
	return 0, false
}

// TaskResources returns what a task of a job is charged for, and its application class.
func (q *jobTable) TaskResources(seq uint64, index int) (r roost.Resources, appClass string) {
	if j := q.jobs[seq]; j != nil && index >= 0 && index < len(j.state) {
		return taskResources(j, index)
	}
	return r, ""
}

// taskResources returns what a task is charged for. Of one inside an alloc that is
// nothing: the alloc is charged for all that it has.
func taskResources(j *job, index int) (roost.Resources, string) {
	spec := j.class(index).spec
	if spec.Inside.Alloc != 0 {
		return roost.Resources{}, spec.AppClass
	}
	return spec.Resources, spec.AppClass
}

// noteSuspension notes in the record of a live attempt since when it is suspended, or
// until when it was.
func (q *Queue) noteSuspension(j *job, i int, on bool) {
	r := j.records.Own(i)
	switch {
	case r == nil || !r.Live:
	case on:
		if r.Suspended == nil {
			r.Suspended = &eventlog.SuspendedSpans{}
		}
		r.Suspended.Begin(q.eventTime)
	case r.Suspended != nil:
		r.Suspended.End(q.eventTime)
	}
}
