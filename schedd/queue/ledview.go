package queue

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
)

// ledStatus tells of a job whose tasks are led by the first as of one of a single task, which has all that the job has.
func (q *Queue) ledStatus(j *job, s *Status) {
	*s = q.ledTaskStatus(j, *s, 0)
	s.Tasks, s.Counts = 1, [roost.Removed + 1]int{}
	s.Counts[s.Task.State] = 1
	s.Failed = min(s.Failed, 1)
}

// ledTaskStatus makes of the status of a job that of a gang of it that one leads, which has all that its tasks have.
func (q *Queue) ledTaskStatus(j *job, s Status, head int) Status {
	t, over := q.task(j, head), j.gangs.open[head/j.plan.gang] == 0
	ended, held := t.Ended, -1
	s.Parts, s.Resources, s.Request = nil, roost.Resources{}, j.class(head).request.ID
	for i := head; i <= j.tail(head); i++ {
		one := Part{Resources: j.class(i).plan.resources}
		if r := j.book.at(i); r != nil {
			one.Node, one.Place = r.node, r.place
			ended = max(ended, r.ended)
		}
		if held < 0 && j.state[i] == roost.Held {
			held = i
		}
		s.Parts, s.Resources = append(s.Parts, one), s.Resources.Add(one.Resources)
	}
	switch {
	case over:
		t.Ended = ended
		t.Exit = j.spentTogether(head, t.Exit)
	case t.State.Final(): // the others are on their way
		t.State, t.Ended, t.Reason = roost.Running, 0, endingReason
	case held > head && !t.State.Active():
		t.State, t.Reason = roost.Held, j.reason(held)
	}
	if t.State == roost.Idle && t.Reason == "" && j.behind(head/j.plan.gang) {
		t.Reason = behindReason()
	}
	if k := j.owned(head); k > head && t.State == roost.Running {
		t.State, t.Reason, t.By = roost.Suspended, j.reason(k), j.suspendedBy(k)
	}
	s.Task, s.Started, s.Ended, s.Reason = &t, t.Started, t.Ended, t.Reason
	s.Locked = t.State == roost.Held && j.locked(max(held, head))
	return s
}

// endingReason is why a job is not over whose program is.
const endingReason = "its program has ended, and its other machines are being given back"

// spentTogether is how a leader ended, with what all of its gang have used.
func (j *job) spentTogether(head int, x *Exit) *Exit {
	if x == nil {
		return nil
	}
	sum := *x
	for i := head + 1; i <= j.tail(head); i++ {
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

// Overspent says of a task whose gang one leads that they have used more CPU time together than they may, and which attempt is to be told. What each has used so
// far comes in.
func (q *Queue) Overspent(t roost.TaskID, used func(roost.AttemptID) time.Duration) (lead roost.AttemptID, reason string, over bool) {
	j := q.jobs[t.Job.Seq]
	if j == nil || !j.plan.led || j.plan.bounds.CPU <= 0 || t.Index >= len(j.state) || !j.state[j.head(t.Index)].Active() {
		return lead, "", false
	}
	sum, head := time.Duration(0), j.head(t.Index)
	for i := head; i <= j.tail(head); i++ {
		if r := j.book.written(i); r != nil && r.live {
			sum += used(q.attemptOf(j, i))
		}
	}
	if sum <= j.plan.bounds.CPU {
		return lead, "", false
	}
	return q.attemptOf(j, head), fmt.Sprintf("CPU time of %v exceeded: its chunks have used %v together", j.plan.bounds.CPU, sum.Round(time.Millisecond)), true
}
