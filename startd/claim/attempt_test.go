package claim

import (
	"testing"

	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
)

// TestLabel checks how the log names a task. A task of an array has the index that its
// owner gave it, and every other task has its number.
func TestLabel(t *testing.T) {
	id := (&wire.AttemptRef{Job: 12, Index: 1, Attempt: 3}).AttemptID("host1")
	for pbs, want := range map[string]string{"12[15].host1": "12[15].host1/3", "12.host1": "12[1].host1/3",
		"": "12[1].host1/3"} {
		if got := (&Machine{}).newAttempt(id, userfiles.UserCredential{},
			&wire.Program{PbsId: pbs}).Label(); got != want {
			t.Errorf("%q: got %s, want %s", pbs, got, want)
		}
	}
}
