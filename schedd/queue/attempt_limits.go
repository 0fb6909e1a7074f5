package queue

import (
	"time"

	"github.com/roost-batch/roost"
)

// AttemptLimits says what a running attempt is held to from now on, where its job was
// altered since it began.
type AttemptLimits struct {
	Attempt  roost.AttemptID
	Walltime time.Duration // of this attempt; 0: none
	CPU      time.Duration // 0: none
}

// AttemptLimits is what a live attempt is held to now; false where that is what it began
// with. What runs of an array goes on as it began.
func (q programBuilder) AttemptLimits(a roost.AttemptID) (AttemptLimits, bool) {
	if !q.IsLive(a) {
		return AttemptLimits{}, false
	}
	j := q.jobs[a.Task.Job.Seq]
	if j.class(a.Task.Index).oldAd == nil || !j.runsWhole() {
		return AttemptLimits{}, false
	}
	return q.markLimits(j, a.Task.Index), true
}

func (q programBuilder) markLimits(j *job, i int) AttemptLimits {
	p := TaskProgram{Walltime: j.classes[j.idleClass(i)].spec.Walltime}
	a := q.attemptOf(j, i)
	q.addCheckpointing(j, a, &p)
	return AttemptLimits{a, p.Walltime, j.spec.ProcessLimits.CPU}
}
