package pbs

import (
	"testing"

	"github.com/roost-batch/roost/internal/wire"
)

// TestSuspendedLetter holds that a suspended task is U while its machine's owner is back,
// and else S.
func TestSuspendedLetter(t *testing.T) {
	for by, want := range map[string]string{"owner": "U", "owner,user": "U", "user": "S", "": "S"} {
		if got := pbsState(&wire.JobStatus{State: "suspended", SuspendedBy: by}); got != want {
			t.Errorf("by %q: got %s, want %s", by, got, want)
		}
	}
}
