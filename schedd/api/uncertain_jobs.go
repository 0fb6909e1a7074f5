package api

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/mutant"
	"github.com/roost-batch/roost/schedd/queue"
)

// checkUncertain refuses to run a job again of whose record a disk has lost something,
// while an attempt that is not on record may live: whoever had it started gave it a lease
// before this start of the schedd, and nobody knows at which node.
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
	return fmt.Errorf("%v: %w: its record on disk was damaged, and an attempt that is not on record may run at some "+
		"node until its lease is over: try again in %v",
		t, roost.Unavailable, (left + time.Second - 1).Truncate(time.Second))
}
