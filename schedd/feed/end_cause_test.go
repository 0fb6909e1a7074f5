package feed

import (
	"testing"

	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/schedd/queue"
)

// TestEndCause checks that the accounts have the causes of the queue. They say whether an
// exit code was what its job calls success.
func TestEndCause(t *testing.T) {
	for _, tt := range []struct {
		exit queue.AttemptExit
		want accounting.EndCause
	}{
		{queue.AttemptExit{}, accounting.EndedExit},
		{queue.AttemptExit{Code: 3}, accounting.EndedExit},
		{queue.AttemptExit{Code: 3, SuccessCode: 3}, accounting.EndedOwnSuccess},
		{queue.AttemptExit{SuccessCode: 3}, accounting.EndedOwnFailure},
		{queue.AttemptExit{Code: 4, SuccessCode: 3}, accounting.EndedExit},
		{queue.AttemptExit{Signal: 9, SuccessCode: 3}, accounting.EndedExit},
		{queue.AttemptExit{Cause: queue.CauseWalltime, Code: 3, SuccessCode: 3}, accounting.EndedWalltime},
		{queue.AttemptExit{Cause: queue.CausePrologue}, accounting.EndedPrologue},
		{queue.AttemptExit{Cause: queue.CausePrologue + 1}, accounting.EndedMachine},
	} {
		if got := endCause(&tt.exit); got != tt.want {
			t.Errorf("%+v: got %d, want %d", tt.exit, got, tt.want)
		}
	}
}
