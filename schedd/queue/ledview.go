package queue

import (
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost"
)

// ledStatus tells of a job whose tasks are led by the first as of one of a single task, which has all that the job has.
func (q *Queue) ledStatus(j *job, s *Status) {
	t := q.task(j, 0)
	s.Resources = roost.Resources{}
	for i := range j.state {
		c := j.class(i)
		one := Part{Resources: c.plan.resources}
		if r := j.book.at(i); r != nil {
			one.Node, one.Place = r.node, r.place
		}
		s.Parts, s.Resources = append(s.Parts, one), s.Resources.Add(one.Resources)
	}
	switch held := slices.Index(j.state, roost.Held); {
	case j.final():
		t.Ended = j.ended
		t.Exit = j.spentTogether(t.Exit)
	case t.State.Final(): // the others are on their way
		t.State, t.Ended, t.Reason = roost.Running, 0, endingReason
	case held > 0 && !t.State.Active():
		t.State, t.Reason = roost.Held, j.reason(held)
	}
	if k := j.owned(); k > 0 && t.State == roost.Running {
		t.State, t.Reason, t.By = roost.Suspended, j.reason(k), j.suspendedBy(k)
	}
	s.Tasks, s.Counts = 1, [roost.Removed + 1]int{}
	s.Counts[t.State] = 1
	s.Failed = min(s.Failed, 1)
	s.Task, s.Started, s.Ended, s.Reason = &t, t.Started, t.Ended, t.Reason
}

// endingReason is why a job is not over whose program is.
const endingReason = "its program has ended, and its other machines are being given back"

// spentTogether is how the leader ended, with what all of its job have used.
func (j *job) spentTogether(x *Exit) *Exit {
	if x == nil {
		return nil
	}
	sum := *x
	for i := 1; i < len(j.state); i++ {
		r := j.book.at(i)
		if r == nil || r.exit == nil {
			continue
		}
		sum.User, sum.System = sum.User+r.exit.User, sum.System+r.exit.System
		sum.MaxRSS = max(sum.MaxRSS, r.exit.MaxRSS)
		u := r.exit.Used
		sum.Used = Used{
			Peak: sum.Used.Peak + u.Peak, Read: sum.Used.Read + u.Read, Written: sum.Used.Written + u.Written, PeakGPU: sum.Used.PeakGPU + u.PeakGPU,
			Disk: sum.Used.Disk + u.Disk,
		}
	}
	return &sum
}

// Overspent says of a job of which one task leads the others that they have used more CPU time together than it may, and which attempt is to be told. What each
// has used so far comes in.
func (q *Queue) Overspent(seq uint64, used func(roost.AttemptID) time.Duration) (lead roost.AttemptID, reason string, over bool) {
	j := q.jobs[seq]
	if j == nil || !j.plan.led || j.plan.bounds.CPU <= 0 || !j.state[0].Active() {
		return lead, "", false
	}
	sum := time.Duration(0)
	for i := range j.state {
		if r := j.book.written(i); r != nil && r.live {
			sum += used(q.attemptOf(j, i))
		}
	}
	if sum <= j.plan.bounds.CPU {
		return lead, "", false
	}
	return q.attemptOf(j, 0), fmt.Sprintf("CPU time of %v exceeded: its chunks have used %v together", j.plan.bounds.CPU, sum.Round(time.Millisecond)), true
}
