package cli

import (
	"strings"
	"testing"

	"github.com/roost-batch/roost/classad"
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

// TestOwnedNode: a machine that its owner does not lend says so.
func TestOwnedNode(t *testing.T) {
	ad, err := classad.Parse(`[Name = "ws17"; State = "Claimed"; OwnerBusyReason = "paused by ann"]`)
	if err != nil {
		t.Fatal(err)
	}
	n := nodeRecordOf(ad)
	if got := n.activity(); got != "paused by ann" {
		t.Errorf("got %q", got)
	}
	if n.activityText = "sweep (bob)"; !strings.HasPrefix(n.activity(), "paused by ann; ") ||
		n.Owner != "paused by ann" {
		t.Errorf("got %q, %+v", n.activity(), n)
	}
}
