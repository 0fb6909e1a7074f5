package api

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/mutant"
	"github.com/roost-batch/roost/schedd/queue"
)

// checkUncertain refuses to run a job with a damaged record again while an unrecorded
// attempt may live. An earlier start of the schedd may have given such an attempt a
// lease, and nobody knows at which node.
func (act *jobActions) checkUncertain(q *queue.Queue, t queue.TaskSelector) error {
	lease, unsure := q.UnrecordedLease(t.Job.Seq)
	if !unsure || mutant.Active(mutant.UnrecordedAttemptIgnored) {
		return nil
	}
	if lease == 0 {
		lease = act.node.Schedd.JobLease
	}
	left := act.dispatch.LeaseEnd(act.loop.ResumedAt(), lease) - act.loop.BootTime()
	if left <= 0 {
		return nil
	}
	return fmt.Errorf("%v: %w: its record on disk was damaged or restored, and an attempt that is not on record may "+
		"run at some node until its lease is over: try again in %v",
		t, roost.Unavailable, (left + time.Second - 1).Truncate(time.Second))
}
