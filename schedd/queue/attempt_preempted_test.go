package queue

import (
	"testing"
	"time"

	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// TestPreempted checks that the record of a preemption says what work was lost. That is
// all of it, or what came after the last checkpoint. The task keeps its place, and no
// retry is spent on it.
func TestPreempted(t *testing.T) {
	for _, c := range []struct {
		name  string
		saved time.Duration
		ran   time.Duration
		want  string
	}{
		{"nothing saved", 0, 90 * time.Second, "by bob; 1m30s of work are lost"},
		{"saved on the way out", 90 * time.Second, 90 * time.Second, "by bob; its 1m30s of work are saved"},
		{"saved before", 60 * time.Second, 90 * time.Second,
			"by bob; 30s of its 1m30s of work are lost, the rest is saved"},
		{"not begun", 0, 0, "by bob; it had only just begun"},
		{"not a second", 0, time.Second / 4, "by bob; it had only just begun"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newTestQueue(t)
			id := d.submit(1, "MaxRetries = 0")
			before, _ := d.queue.Request(d.queue.Requests()[0])
			oldest := before.OldestSubmit
			d.now = d.now.Add(time.Minute)
			d.submit(1, "HoldOnSubmit = true")
			a := d.start()
			if c.saved > 0 {
				e, err := d.queue.RecordCheckpoint(d.now, a,
					eventlog.CheckpointImage{Sequence: 1, Attempt: a.Attempt,
						CPUUsage: eventlog.CPUUsage{Wall: int64(c.saved)}})
				if err != nil {
					t.Fatal(err)
				}
				d.apply(e)
			}
			d.end(a, eventlog.AttemptExit{Cause: eventlog.CausePreemption, Reason: "by bob", Wall: int64(c.ran)})
			d.checkState(id, "idle 1")
			st, _ := d.queue.TaskStatus(id.Task(0))
			if st.Task.Exit.Reason != c.want {
				t.Errorf("got %q, want %q", st.Task.Exit.Reason, c.want)
			}
			whole, _ := d.queue.Status(id.Seq)
			if r, _ := d.queue.Request(whole.Request); r.Ready != 1 {
				t.Errorf("why it waits is looked up by a request with %d ready", r.Ready)
			}
			for _, id := range d.queue.Requests() { // with a checkpoint it asks for other machines
				if r, _ := d.queue.Request(id); r.Ready > 0 && r.OldestSubmit.After(oldest) {
					t.Errorf("it has lost its place: %v, was %v", r.OldestSubmit, oldest)
				}
			}
			d.end(d.start(), eventlog.AttemptExit{Code: 1})
			d.checkState(id, "completed 1 failed 1")
		})
	}
}
