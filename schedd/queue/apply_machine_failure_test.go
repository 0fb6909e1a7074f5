package queue

import (
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// TestMachineFailures checks that a task is held after several machine failures in a row.
// Failures of one moment count once, and the count survives a restart.
func TestMachineFailures(t *testing.T) {
	d := newTestQueue(t)
	id := d.submit(1, "")
	spoil := func(times int, apart time.Duration) {
		for range times {
			d.now = d.now.Add(apart)
			d.end(d.start(), eventlog.AttemptExit{Cause: eventlog.CauseMachine, Reason: "no space left on device"})
			d.checkSame(d.restoredCopy())
		}
	}
	state := func() (roost.TaskState, string) {
		st, _ := d.queue.TaskStatus(id.Task(0))
		return st.Task.State, st.Task.Reason
	}
	spoil(20, 20*time.Millisecond)
	spoil(3, failureWindow)
	spoil(20, 20*time.Millisecond)
	if s, _ := state(); s != roost.Idle {
		t.Fatalf("after four troubles of many attempts each it is %v", s)
	}
	spoil(1, failureWindow)
	if s, why := state(); s != roost.Held ||
		!strings.Contains(why, "5 attempts in a row were spoiled by machines, the last one: no space left on device") {
		t.Errorf("after five it is %v: %s", s, why)
	}
}
