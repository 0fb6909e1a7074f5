package queue

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// addPreemptionCost adds to the end of an attempt that had to make room what that has
// cost: the work that no checkpoint has. It is measured on the node's clock alone: how
// long the attempt ran, less how much of that is in the newest image.
func (q attemptDecisions) addPreemptionCost(a roost.AttemptID, x *eventlog.AttemptExit) *eventlog.AttemptExit {
	if x.Cause != eventlog.CausePreemption {
		return x
	}
	y := *x
	if y.Reason == "" {
		y.Reason = "preempted"
	}
	ran := time.Duration(x.Wall)
	lost := ran
	if r := q.jobs[a.Task.Job.Seq].records.Own(a.Task.Index); r != nil && r.NewestImage() != nil &&
		r.NewestImage().Attempt == a.Attempt {
		lost = min(max(ran-time.Duration(r.NewestImage().Wall-r.Checkpoints.OriginUsage.Wall), 0), ran)
	}
	switch whole := ran.Round(time.Second); {
	case whole == 0:
		y.Reason += "; it had only just begun"
	case lost == ran:
		y.Reason += fmt.Sprintf("; %v of work are lost", whole)
	case lost < time.Second:
		y.Reason += fmt.Sprintf("; its %v of work are saved", whole)
	default:
		y.Reason += fmt.Sprintf("; %v of its %v of work are lost, the rest is saved", lost.Round(time.Second), whole)
	}
	return &y
}
