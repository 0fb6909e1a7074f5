package pool

import (
	"testing"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/document"
)

// TestOwnedNode: a machine that its owner does not lend says so.
func TestOwnedNode(t *testing.T) {
	ad, err := classad.Parse(`[Name = "ws17"; State = "Claimed"; OwnerBusyReason = "paused by ann"]`)
	if err != nil {
		t.Fatal(err)
	}
	n := document.NodeOf(ad)
	if got := nodeActivity(&n, ""); got != "paused by ann" {
		t.Errorf("got %q", got)
	}
	if got := nodeActivity(&n, "sweep (bob)"); got != "paused by ann; sweep (bob)" || n.Owner != "paused by ann" {
		t.Errorf("got %q, %+v", got, n)
	}
}
