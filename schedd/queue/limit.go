package queue

import (
	"time"

	"github.com/roost-batch/roost"
)

// Limit says what a running attempt is held to from now on, where its job was altered since it began.
type Limit struct {
	Attempt  roost.AttemptID
	Walltime time.Duration // of this attempt; 0: none
	CPU      time.Duration // 0: none
}

// TakeLimits drains the attempts that have other limits now.
func (q *Queue) TakeLimits() []Limit {
	out := q.limits
	q.limits = nil
	return out
}

// Limited is what a live attempt is held to now; false where that is what it began with. What runs of an array goes on as it began.
func (q *Queue) Limited(a roost.AttemptID) (Limit, bool) {
	if !q.Live(a) {
		return Limit{}, false
	}
	j := q.jobs[a.Task.Job.Seq]
	if j.class(a.Task.Index).past == nil || !j.runs() {
		return Limit{}, false
	}
	return q.limit(j, a.Task.Index), true
}

func (q *Queue) limit(j *job, i int) Limit {
	p := Program{Walltime: j.classes[j.proper(i)].plan.walltime}
	a := q.attemptOf(j, i)
	q.continued(j, a, &p)
	return Limit{a, p.Walltime, j.plan.bounds.CPU}
}
