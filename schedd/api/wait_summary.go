package api

import (
	"cmp"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/negotiation"
	"github.com/roost-batch/roost/schedd/queue"
)

// waitSummary counts what tasks wait for. Naively each reader would have the loop look at
// all requests, of which there may be as many as jobs; so what it has counted serves all
// readers for a while.
type waitSummary struct {
	at      time.Time
	waiting []*wire.WaitReasonCount // the most frequent first
	oldest  []*wire.OldestWait      // the highest band first
}

// maxWaitAge is how old a summary may be.
const maxWaitAge = 2 * time.Second

// unexplainedWait is the reason of tasks whose wait nobody has explained yet.
const unexplainedWait = "unexplained"

// summary returns the counts, which nobody changes later. It is called in the loop.
func (w *waitSummary) summary(now time.Time, q *queue.Queue, leader *negotiation.LeaderConn) (
	[]*wire.WaitReasonCount, []*wire.OldestWait) {
	if age := now.Sub(w.at); age >= 0 && age < maxWaitAge {
		return w.waiting, w.oldest
	}
	tasks := map[string]uint64{}
	type firstJob struct {
		id    roost.JobID
		since int64
	}
	oldest := map[roost.PriorityBand]firstJob{}
	q.EachReady(func(r *queue.Request, first roost.JobID, since int64) {
		reason := unexplainedWait
		if all := leader.Explanation(r.ID).GetReasons(); len(all) > 0 {
			reason = all[0].GetKind() // the one of most machines
		}
		tasks[reason] += uint64(r.Ready)
		if at, ok := oldest[r.Band]; since != 0 && (!ok || since < at.since) {
			oldest[r.Band] = firstJob{first, since}
		}
	})
	*w = waitSummary{at: now}
	for reason, n := range tasks {
		w.waiting = append(w.waiting, &wire.WaitReasonCount{Reason: reason, Tasks: n})
	}
	slices.SortFunc(w.waiting, func(a, b *wire.WaitReasonCount) int {
		return cmp.Or(cmp.Compare(b.Tasks, a.Tasks), cmp.Compare(a.Reason, b.Reason))
	})
	for i, name := range slices.Backward(roost.BandNames()) {
		if at, ok := oldest[roost.PriorityBand(i)]; ok {
			w.oldest = append(w.oldest, &wire.OldestWait{Band: name, Id: at.id.String(), Since: at.since})
		}
	}
	return w.waiting, w.oldest
}
