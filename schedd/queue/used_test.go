package queue

import (
	"testing"

	"github.com/roost-batch/roost"
)

// TestUsedIsKept: what attempts used outlives the log and the snapshot, of successes and of failures, and successes stay small.
func TestUsedIsKept(t *testing.T) {
	const kib = 1 << 10
	tests := []struct {
		exit  Exit
		small bool
	}{
		{Exit{Wall: 5, Used: Used{Peak: 300 * kib, Read: 4 * kib, Written: 8 * kib}}, true},
		{Exit{Wall: 5}, true},
		{Exit{Wall: 5, Used: Used{Peak: 5 << 40}}, false},
		{Exit{Wall: 5, Used: Used{Peak: 4 * kib, PeakGPU: 7 * kib}}, false},
		{Exit{Wall: 5, Used: Used{Disk: 7 * kib}}, false},
		{Exit{Cause: ByMemory, Signal: 9, Reason: "too much", Used: Used{Peak: 64 << 20}}, false},
	}
	d := newDesk(t)
	id := d.submit(len(tests), "")
	for i := range tests {
		d.end(d.start(), tests[i].exit)
	}
	for _, q := range []*Queue{d.q, d.copied()} {
		for i, c := range tests {
			st, ok := q.TaskStatus(id.Task(i))
			if !ok || st.Task.Exit == nil || *st.Task.Exit != c.exit {
				t.Errorf("task %d: got %+v, want %+v", i, st.Task.Exit, c.exit)
			}
			if small := q.jobs[id.Seq].book.ref(i).kind() == kindFinished; small != c.small {
				t.Errorf("task %d: kept small %v, want %v", i, small, c.small)
			}
		}
	}
	for _, c := range tests {
		e := Event{What: Ended, Time: 5, Job: 7, Attempt: 1, Exit: &c.exit}
		again, err := DecodeEvent(AppendEvent(nil, &e))
		if err != nil || *again.Exit != c.exit {
			t.Errorf("event: got %+v, %v, want %+v", again.Exit, err, c.exit)
		}
	}
}

// TestRunWithoutUsed: runs of successes that were written before usage was kept are read as if nothing had been used.
func TestRunWithoutUsed(t *testing.T) {
	d := newDesk(t)
	id := d.submit(2, "")
	d.end(d.start(), Exit{Wall: 5, Used: Used{Peak: 1 << 20}})
	b := d.q.jobs[id.Seq].book.appendFinished(nil, 0, 0)
	var old []byte
	if err := fields(b, func(f field) error {
		switch f.number {
		case 3:
			old = message(old, 3, func([]byte) []byte { return f.bytes })
		case 1, 2:
			old = number(old, f.number, f.value)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	var k book
	k.nodes = d.q.jobs[id.Seq].book.nodes
	if err := k.decodeFinished(old, 2); err != nil {
		t.Fatal(err)
	}
	if x := k.at(0).exit; x.Wall != 5 || x.Used != (Used{}) {
		t.Errorf("got %+v", x)
	}
}

// TestTooMuchOfSomething: needing more than was asked for is the job's own failure, and tried again as often as the job says.
func TestTooMuchOfSomething(t *testing.T) {
	for _, cause := range []Cause{ByMemory, ByGPUMemory, ByDisk} {
		d := newDesk(t)
		id := d.submit(1, "MaxRetries = 1")
		d.end(d.start(), Exit{Cause: cause, Signal: 9, Reason: "too much"})
		if st, _ := d.q.TaskStatus(id.Task(0)); st.Task.State != roost.Idle {
			t.Errorf("cause %d: after the first attempt it is %v", cause, st.Task.State)
		}
		d.end(d.start(), Exit{Cause: cause, Signal: 9, Reason: "too much"})
		st, _ := d.q.TaskStatus(id.Task(0))
		if whole, _ := d.q.Status(id.Seq); st.Task.State != roost.Completed || whole.Failed != 1 || st.Reason != "too much" {
			t.Errorf("cause %d: in the end it is %v, %d failed, %q", cause, st.Task.State, whole.Failed, st.Reason)
		}
	}
}
