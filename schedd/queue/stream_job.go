package queue

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// HoldInfeasible decides that a stream job is held for which the cell found no room, with
// what is missing. A service that waits for ever serves nobody, and whoever submitted it
// thinks that it does. What has run before is not refused: it waits for its place as all
// others do, for it is to run again after a failure with no hand laid on.
func (q *requestIndex) HoldInfeasible(now time.Time, id RequestID, missing string) []eventlog.JobEvent {
	r := q.requests[id]
	if r == nil || r.Class != roost.AppStream || len(r.classes) == 0 {
		return nil
	}
	j := r.classes[0].job
	if j.firstStarted != 0 || j.active > 0 || j.counts[roost.Idle] == 0 {
		return nil
	}
	job := j.id(q.host)
	return []eventlog.JobEvent{{Type: eventlog.Held, Time: now.UnixNano(), Job: j.seq,
		Reason: fmt.Sprintf("refused: %s; to try again: roost release %v", missing, job)}}
}
