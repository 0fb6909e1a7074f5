package pbs

import (
	"testing"

	"github.com/roost-batch/roost/internal/wire"
)

// TestSuspendedLetter: a task that stands still because its machine's owner is back is U
// to PBS, and S if only a user has suspended it.
func TestSuspendedLetter(t *testing.T) {
	for by, want := range map[string]string{"owner": "U", "owner,user": "U", "user": "S", "": "S"} {
		if got := pbsState(&wire.JobStatus{State: "suspended", SuspendedBy: by}); got != want {
			t.Errorf("by %q: got %s, want %s", by, got, want)
		}
	}
}
