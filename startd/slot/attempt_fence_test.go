package slot

import (
	"testing"

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
