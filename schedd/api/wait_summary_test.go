package api

import (
	"fmt"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/negotiation"
	"github.com/roost-batch/roost/schedd/queue"
)

// TestWaitSummary counts the tasks of all jobs once, and finds the first job of each
// band. A second reader gets the same counts until they are too old.
func TestWaitSummary(t *testing.T) {
	q := queue.New("s")
	begin := time.Unix(1_000_000, 0)
	submit := func(seq int, band roost.PriorityBand, count int) {
		ad := classad.New()
		ad.SetString(roost.AttrCmd, "/bin/true")
		ad.SetString(roost.AttrBand, band.String())
		ad.SetInt(roost.AttrRequestCpus, int64(1+seq))
		q.Apply(queue.JobEvent{Type: queue.Submitted, Time: begin.Add(time.Duration(seq) * time.Second).UnixNano(),
			Job: uint64(seq), Submission: &queue.SubmittedJob{Owner: "ann", UID: 1000, Ad: ad.String(), Count: count}})
	}
	submit(1, roost.BatchBand, 3)
	submit(2, roost.ProductionBand, 1)
	submit(3, roost.BatchBand, 5)
	submit(4, roost.ProductionBand, 2)
	var w waitSummary
	now := begin.Add(time.Minute)
	waiting, oldest := w.summary(now, q, &negotiation.LeaderConn{})
	if len(waiting) != 1 || waiting[0].GetReason() != unexplainedWait || waiting[0].GetTasks() != 11 {
		t.Errorf("waiting: %v", waiting)
	}
	for i, want := range []struct {
		band roost.PriorityBand
		job  int
	}{{roost.ProductionBand, 2}, {roost.BatchBand, 1}} {
		if len(oldest) != 2 || oldest[i].GetBand() != want.band.String() ||
			oldest[i].GetId() != fmt.Sprintf("%d.s", want.job) ||
			oldest[i].GetSince() != begin.Add(time.Duration(want.job)*time.Second).UnixNano() {
			t.Errorf("the oldest: %v, want job %d in %v", oldest, want.job, want.band)
		}
	}
	submit(5, roost.BatchBand, 1)
	if again, _ := w.summary(now.Add(maxWaitAge-1), q, &negotiation.LeaderConn{}); again[0].GetTasks() != 11 {
		t.Errorf("it was counted again: %v", again)
	}
	if later, _ := w.summary(now.Add(maxWaitAge), q, &negotiation.LeaderConn{}); later[0].GetTasks() != 12 {
		t.Errorf("it was not counted again: %v", later)
	}
}
