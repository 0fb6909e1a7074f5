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
// others do, for it is to run again after a failure with no hand laid on. A job with a
// service block waits too: it is to run as soon as that is possible.
func (q *requestIndex) HoldInfeasible(now time.Time, id RequestID, missing string) []eventlog.JobEvent {
	r := q.requests[id]
	if r == nil || r.Class != roost.AppStream || r.Service != nil || len(r.classes) == 0 {
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

// DenyRun decides that the tasks of a request to run now take their turn again. No
// machine can take them; why says what is missing. It returns nothing for any other
// request.
func (q *requestIndex) DenyRun(now time.Time, id RequestID, why string) []eventlog.JobEvent {
	r := q.requests[id]
	if r == nil || !r.Now || len(r.classes) == 0 {
		return nil
	}
	j := r.classes[0].job
	var tasks []eventlog.IndexRange
	for i, s := range j.state {
		if s == roost.Idle && j.class(i).request == r {
			tasks = appendIndex(tasks, i)
		}
	}
	if len(tasks) == 0 {
		return nil
	}
	return []eventlog.JobEvent{{Type: eventlog.RunDenied, Time: now.UnixNano(), Job: j.seq,
		Ranges: j.wholeGangs(TaskSelector{Ranges: tasks}).Ranges, Reason: why}}
}
