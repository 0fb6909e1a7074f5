package queue

import (
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// TestRunCount: a task whose attempts are counted is held when it would need too many,
// and no other is.
func TestRunCount(t *testing.T) {
	for _, c := range []struct {
		src  string
		runs int // until it is held
	}{{"RunCount = 0", 21}, {"RunCount = 18", 3}, {"RunCount = 40", 1}, {"", 0}} {
		d := newTestQueue(t)
		id := d.submit(1, c.src)
		n := 0
		for n < 30 && d.queue.jobs[id.Seq].state[0] == roost.Idle {
			d.end(d.start(), eventlog.AttemptExit{Cause: eventlog.CauseVacate, Reason: "drained"})
			n++
		}
		st, _ := d.queue.Status(id.Seq)
		if c.runs == 0 {
			if n != 30 {
				t.Errorf("not counted: it was run %d times", n)
			}
			continue
		}
		if n != c.runs || st.Counts[roost.Held] != 1 || !strings.Contains(st.Reason, "run_count") {
			t.Errorf("%s: run %d times, want %d; %v, %q", c.src, n, c.runs, st.Counts, st.Reason)
		}
	}
}
