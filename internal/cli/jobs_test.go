package cli

import (
	"testing"

	"github.com/roost-batch/roost/internal/wire"
)

// TestNoteOfASuspendedTask: the last column says for whom it stands still.
func TestNoteOfASuspendedTask(t *testing.T) {
	for by, want := range map[string]string{
		"owner": "its owner uses n1", "user": "on n1, suspended by a user", "owner,user": "its owner uses n1, and a user has suspended it", "": "on n1",
	} {
		if got := note(&wire.JobStatus{State: "suspended", Suspended: true, SuspendedBy: by, Node: "n1", Tasks: 1}); got != want {
			t.Errorf("by %q: got %q, want %q", by, got, want)
		}
	}
}
