package queue

import (
	"bytes"
	"testing"

	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// TestPreemptedGoesFirst checks that a task that had to leave its machine, with its work
// saved, starts before new ones.
func TestPreemptedGoesFirst(t *testing.T) {
	d := newTestQueue(t)
	limits := SubmitLimits{NewSecret: func() []byte { return bytes.Repeat([]byte{7}, 32) }}
	events, _, _, err := d.queue.SubmitJobs(d.now, alice, "k",
		[]jobad.SubmitSpec{{Ad: parseTestAd(t, `Checkpoint = "image"`), Count: 3}}, limits)
	if err != nil {
		t.Fatal(err)
	}
	d.apply(events...)
	a := d.start()
	began, ok := d.queue.RecordStarted(d.now, a)
	retained, err := d.queue.RecordCheckpoint(d.now,
		a, eventlog.CheckpointImage{Sequence: 1, Time: d.now.UnixNano(), Size: 100, Node: "n"})
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	d.apply(began, retained)
	d.end(a, eventlog.AttemptExit{Cause: eventlog.CauseVacate, Signal: 15})
	var first, second *Request
	for _, id := range d.queue.Requests() {
		r, _ := d.queue.Request(id)
		if next, ok := d.queue.NextTask(id); ok && next == a.Task {
			first = r
		} else {
			second = r
		}
	}
	if first == nil || second == nil || !first.OldestSubmit.Before(second.OldestSubmit) {
		t.Fatalf("displaced: %+v, the others: %+v", first, second)
	}
}
