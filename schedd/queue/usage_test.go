package queue

import (
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// TestUsageRetained: what attempts used outlives the log and the snapshot, of successes
// and of failures, and successes stay small.
func TestUsageRetained(t *testing.T) {
	const kib = 1 << 10
	tests := []struct {
		exit  eventlog.AttemptExit
		small bool
	}{
		{eventlog.AttemptExit{Wall: 5, Used: eventlog.ResourceUsage{Peak: 300 * kib, Read: 4 * kib,
			Written: 8 * kib}}, true},
		{eventlog.AttemptExit{Wall: 5}, true},
		{eventlog.AttemptExit{Wall: 5, Used: eventlog.ResourceUsage{Peak: 5 << 40}}, false},
		{eventlog.AttemptExit{Wall: 5, Used: eventlog.ResourceUsage{Peak: 4 * kib, PeakGPU: 7 * kib}}, false},
		{eventlog.AttemptExit{Wall: 5, Used: eventlog.ResourceUsage{Disk: 7 * kib}}, false},
		{eventlog.AttemptExit{Cause: eventlog.CauseMemory, Signal: 9, Reason: "too much",
			Used: eventlog.ResourceUsage{Peak: 64 << 20}}, false},
	}
	d := newTestQueue(t)
	id := d.submit(len(tests), "")
	for i := range tests {
		d.end(d.start(), tests[i].exit)
	}
	for _, q := range []*Queue{d.queue, d.restoredCopy()} {
		for i, c := range tests {
			st, ok := q.TaskStatus(id.Task(i))
			if !ok || st.Task.Exit == nil || *st.Task.Exit != c.exit {
				t.Errorf("task %d: got %+v, want %+v", i, st.Task.Exit, c.exit)
			}
			if small := q.jobs[id.Seq].records.Own(i) == nil; small != c.small {
				t.Errorf("task %d: kept small %v, want %v", i, small, c.small)
			}
		}
	}
	for _, c := range tests {
		e := eventlog.JobEvent{Type: eventlog.Ended, Time: 5, Job: 7, Attempt: 1, Exit: &c.exit}
		again, err := eventlog.DecodeEvent(eventlog.AppendEvent(nil, &e))
		if err != nil || *again.Exit != c.exit {
			t.Errorf("event: got %+v, %v, want %+v", again.Exit, err, c.exit)
		}
	}
}

// TestResourceExceeded checks that a task that needs more than it asked for fails by
// itself. It is tried again as often as the job says.
func TestResourceExceeded(t *testing.T) {
	for _, cause := range []eventlog.ExitCause{eventlog.CauseMemory, eventlog.CauseGPUMemory, eventlog.CauseDisk} {
		d := newTestQueue(t)
		id := d.submit(1, "MaxRetries = 1")
		d.end(d.start(), eventlog.AttemptExit{Cause: cause, Signal: 9, Reason: "too much"})
		if st, _ := d.queue.TaskStatus(id.Task(0)); st.Task.State != roost.Idle {
			t.Errorf("cause %d: after the first attempt it is %v", cause, st.Task.State)
		}
		d.end(d.start(), eventlog.AttemptExit{Cause: cause, Signal: 9, Reason: "too much"})
		st, _ := d.queue.TaskStatus(id.Task(0))
		if whole, _ := d.queue.Status(id.Seq); st.Task.State != roost.Completed || whole.Failed != 1 ||
			st.Reason != "too much" {
			t.Errorf("cause %d: in the end it is %v, %d failed, %q", cause, st.Task.State, whole.Failed, st.Reason)
		}
	}
}
