package negotiation

import (
	"fmt"
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

// TestNodeFailures checks that a task that has failed twice on a node avoids it for half
// an hour. After more failures it avoids the node for longer. It avoids no other node,
// and none where it went well.
func TestNodeFailures(t *testing.T) {
	var f nodeFailures
	now := time.Unix(0, 0)
	task := roost.JobID{Seq: 1, Host: "h"}.Task(3)
	for i, want := range []time.Duration{0, 30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour,
		8 * time.Hour} {
		f.noteFailure(now, task, "n1")
		if want == 0 && f.isAvoidPair(now, task, "n1") {
			t.Errorf("after %d failures it is kept apart", i+1)
		}
		if want > 0 && (!f.isAvoidPair(now.Add(want-1), task, "n1") || f.isAvoidPair(now.Add(want), task, "n1")) {
			t.Errorf("after %d failures it is not kept apart for %v", i+1, want)
		}
	}
	if f.isAvoidPair(now, task, "n2") || f.isAvoidPair(now, task.Job.Task(4), "n1") {
		t.Error("others are kept apart, too")
	}
	f.removeFailures(task, "n1")
	if f.isAvoidPair(now, task, "n1") || f.pairs != 0 || len(f.tasks) != 0 {
		t.Errorf("when it went well there: %+v", f)
	}
	for i := range maxNodeFailures + 10 {
		f.noteFailure(now, task.Job.Task(i), "n1")
		f.noteFailure(now, task.Job.Task(i), fmt.Sprint("n", 2+i%2))
	}
	if f.pairs > maxNodeFailures {
		t.Errorf("%d pairs are remembered", f.pairs)
	}
	f.noteFailure(now, task, "n9")
	f.noteFailure(now, task, "n9")
	if !f.isAvoidPair(now, task, "n9") {
		t.Error("when there are many, a new one has no room though the others are not kept apart")
	}
	f.removeFailures(task, "")
	if f.isAvoidPair(now, task, "n9") {
		t.Error("what runs no more is remembered")
	}
}
