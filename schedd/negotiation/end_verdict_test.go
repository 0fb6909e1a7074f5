package negotiation

import (
	"testing"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// TestClassifyEnd checks that a node's report alone does not make an error on the job's
// own files the node's fault.
func TestClassifyEnd(t *testing.T) {
	for _, tt := range []struct {
		cause    queue.ExitCause
		code     int32
		ownFiles bool
		want     wire.Outcome_Verdict
		says     bool
	}{
		{queue.CauseExited, 0, false, wire.Outcome_GOOD, true},
		{queue.CauseExited, 1, false, wire.Outcome_FAILED, true},
		{queue.CauseLaunch, 0, false, wire.Outcome_FAILED, true},
		{queue.CauseMachine, 0, false, wire.Outcome_SPOILED, true},
		{queue.CauseMachine, 0, true, wire.Outcome_FAILED, true},
		{queue.CauseRemoval, 0, false, 0, false},
	} {
		got, known := classifyEnd(&queue.AttemptExit{Cause: tt.cause, Code: tt.code}, tt.ownFiles)
		if got != tt.want || known != tt.says {
			t.Errorf("%v, code %d, own files %v: got %v %v, want %v %v", tt.cause, tt.code, tt.ownFiles, got, known,
				tt.want, tt.says)
		}
	}
}
