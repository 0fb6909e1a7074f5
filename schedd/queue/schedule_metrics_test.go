package queue

import (
	"testing"

	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// TestWasSkipped: instants before which the clock was set back are decided anew, and do
// not count as skipped.
func TestWasSkipped(t *testing.T) {
	for reason, want := range map[string]bool{
		"missed: 3 runs from 1 to 3": true, "the run of 1: job 2 has not ended": true,
		clockReason + " from 9: instants from here on run unless they have": false,
	} {
		if got := WasSkipped(&eventlog.JobEvent{Type: eventlog.TickSkipped, Reason: reason}); got != want {
			t.Errorf("%q: got %v", reason, got)
		}
	}
	if WasSkipped(&eventlog.JobEvent{Type: eventlog.Ticked}) {
		t.Error("a run that was made counts as skipped")
	}
}
