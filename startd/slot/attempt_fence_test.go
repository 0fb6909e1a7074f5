package slot

import (
	"errors"
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

// TestFenceForgetsTheOldest shows that the memory for attempts is bounded.
func TestFenceForgetsTheOldest(t *testing.T) {
	f := newAttemptFence()
	id := func(seq, attempt int) roost.AttemptID {
		return roost.AttemptID{Task: roost.JobID{Seq: uint64(seq), Host: "s"}.Task(0),
			Attempt: roost.AttemptNumber(attempt)}
	}
	for seq := range 3 * attemptFenceSize {
		if !f.advance(id(seq+1, 2)) || f.advance(id(seq+1, 2)) || f.advance(id(seq+1, 1)) {
			t.Fatalf("task %d: an old attempt passed, or a new one did not", seq+1)
		}
	}
	if len(f.last) != attemptFenceSize || len(f.order) != attemptFenceSize {
		t.Errorf("%d tasks are remembered, want %d", len(f.last), attemptFenceSize)
	}
}

// TestTermDecides checks that a leader of the cell's queue that was replaced is not
// believed, whatever its clock says. After a minute without a leader the cell may have
// been recovered with a lower term.
func TestTermDecides(t *testing.T) {
	const minute = roost.BootTime(time.Minute)
	c := New(TableOptions{})
	connect := func(now roost.BootTime, id uint64, started int64, incarnation uint64) bool {
		t.Helper()
		err := c.Connected(now, id, "cell", started, incarnation)
		if err != nil && !errors.Is(err, roost.Stale) {
			t.Fatal(err)
		}
		return err == nil
	}
	for _, step := range []struct {
		name        string
		now         roost.BootTime
		id          uint64
		started     int64
		incarnation uint64
		want        bool
	}{
		{"a leader of an older release", 0, 1, 5000, 7, true},
		{"a higher term", 0, 2, 0, 8, true},
		{"the same one", 0, 3, 0, 8, false},
		{"a lower term", minute, 4, 0, 7, false},
		{"a lower term after long", 100 * minute, 5, 0, 7, false},
	} {
		if got := connect(step.now, step.id, step.started, step.incarnation); got != step.want {
			t.Errorf("%s: it is believed: %v", step.name, got)
		}
	}
	c.Disconnected(100*minute, 2, "cell")
	if connect(101*minute-1, 6, 0, 7) {
		t.Error("a lower term is believed before a minute without a leader")
	}
	if !connect(101*minute, 7, 0, 7) {
		t.Error("a lower term is not believed after a minute without a leader")
	}
	if !connect(101*minute, 8, 9000, 1) {
		t.Error("a schedd that has lost its disk and started later is not believed")
	}
}
