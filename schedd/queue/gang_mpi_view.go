package queue

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// mpiJobStatus shows a job of one led gang as a single task that has all of the job's
// resources.
func (q statusView) mpiJobStatus(j *job, s *JobStatus) {
	*s = q.mpiTaskStatus(j, *s, 0)
	s.Tasks, s.Counts = 1, [roost.Removed + 1]int{}
	s.Counts[s.Task.State] = 1
	s.Failed = min(s.Failed, 1)
}

// mpiTaskStatus turns the status of a job into that of one of its led gangs. The gang has
// all that its tasks have.
func (q statusView) mpiTaskStatus(j *job, s JobStatus, head int) JobStatus {
	t, over := q.task(j, head), j.gangs.openTasks[head/j.spec.GangSize] == 0
	ended, held := t.Ended, -1
	s.Placements, s.Resources, s.Request = nil, roost.Resources{}, j.class(head).request.ID
	s.Released, s.ReleasedUsage = nil, j.release().releasedUsage(head)
	for i := head; i <= j.lastOfGang(head); i++ {
		one := TaskPlacement{Resources: j.class(i).spec.Resources}
		if r := j.records.Get(i); r != nil {
			one.Node, one.Placement = r.Node, r.Placement
			ended = max(ended, r.Ended)
		}
		if held < 0 && j.state[i] == roost.Held {
			held = i
		}
		if j.released[i] {
			s.Released = append(s.Released, i-head)
			continue
		}
		s.Placements, s.Resources = append(s.Placements, one), s.Resources.Add(one.Resources)
	}
	switch {
	case over:
		t.Ended = ended
		t.Exit = j.gangUsage(head, t.Exit)
	case t.State.IsFinal(): // the others are on their way
		t.State, t.Ended, t.Reason = roost.Running, 0, endingReason
	case held > head && !t.State.IsActive():
		t.State, t.Reason = roost.Held, j.stateReason(held)
	}
	if t.State == roost.Idle && t.Reason == "" && j.waitsForEarlierGang(head/j.spec.GangSize) {
		t.Reason = earlierGangReason()
	}
	if k := j.suspendedForOwner(head); k > head && t.State == roost.Running {
		t.State, t.Reason, t.SuspendedBy = roost.Suspended, j.stateReason(k), j.suspendedBy(k)
	}
	s.Task, s.Started, s.Ended, s.Reason = &t, t.Started, t.Ended, t.Reason
	s.Locked = t.State == roost.Held && j.isLocked(max(held, head))
	return s
}

// endingReason is why a job is not over whose program is.
const endingReason = "its program has ended, and its other machines are being given back"

// gangUsage is how a leader ended, with what all of its gang have used.
func (j *job) gangUsage(head int, x *eventlog.AttemptExit) *eventlog.AttemptExit {
	if x == nil {
		return nil
	}
	sum := *x
	for i := head + 1; i <= j.lastOfGang(head); i++ {
		r := j.records.Get(i)
		if r == nil || r.Exit == nil {
			continue
		}
		sum.User, sum.System = sum.User+r.Exit.User, sum.System+r.Exit.System
		sum.MaxRSS = max(sum.MaxRSS, r.Exit.MaxRSS)
		u := r.Exit.Used
		sum.Used = eventlog.ResourceUsage{
			Peak: sum.Used.Peak + u.Peak, Read: sum.Used.Read + u.Read, Written: sum.Used.Written + u.Written,
			PeakGPU: sum.Used.PeakGPU + u.PeakGPU,
			Disk:    sum.Used.Disk + u.Disk,
		}
	}
	return &sum
}

// GangOverCPULimit reports whether a led gang has used more CPU time together than it
// may, and which attempt to end. used says what each attempt has used so far.
func (q *jobTable) GangOverCPULimit(t roost.TaskID,
	used func(roost.AttemptID) time.Duration) (lead roost.AttemptID, reason string, over bool) {
	j := q.jobs[t.Job.Seq]
	if j == nil || !j.spec.MPIGang || j.spec.ProcessLimits.CPU <= 0 || t.Index >= len(j.state) ||
		!j.state[j.primaryOf(t.Index)].IsActive() {
		return lead, "", false
	}
	head := j.primaryOf(t.Index)
	given := j.release().releasedUsage(head)
	sum := time.Duration(given.User + given.System)
	for i := head; i <= j.lastOfGang(head); i++ {
		if r := j.records.Own(i); r != nil && r.Live {
			sum += used(q.attemptOf(j, i))
		}
	}
	if sum <= j.spec.ProcessLimits.CPU {
		return lead, "", false
	}
	return q.attemptOf(j, head), fmt.Sprintf("CPU time of %v exceeded: its chunks have used %v together",
		j.spec.ProcessLimits.CPU, sum.Round(time.Millisecond)), true
}
