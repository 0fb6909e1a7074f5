package dispatch

import (
	"testing"

	"github.com/roost-batch/roost"
)

// TestHas: an attempt is the word of the node that it was given to, and of no other.
func TestHas(t *testing.T) {
	task := roost.TaskID{Job: roost.JobID{Seq: 1, Host: "submit"}}
	d := &Dispatcher{busy: map[roost.TaskID]*Claim{task: {Node: "n1",
		Attempt: roost.AttemptID{Task: task, Attempt: 2}}}}
	for _, c := range []struct {
		node    string
		attempt roost.AttemptNumber
		want    bool
	}{{"n1", 2, true}, {"n2", 2, false}, {"n1", 1, false}} {
		if got := d.HasAttempt(c.node, roost.AttemptID{Task: task, Attempt: c.attempt}); got != c.want {
			t.Errorf("%s, attempt %d: got %v", c.node, c.attempt, got)
		}
	}
}
