package pool

import (
	"strings"
	"testing"

	"github.com/roost-batch/roost/classad"
)

// TestOwnedNode: a machine that its owner does not lend says so.
func TestOwnedNode(t *testing.T) {
	ad, err := classad.Parse(`[Name = "ws17"; State = "Claimed"; OwnerBusyReason = "paused by ann"]`)
	if err != nil {
		t.Fatal(err)
	}
	n := NodeRecordOf(ad)
	if got := n.activity(); got != "paused by ann" {
		t.Errorf("got %q", got)
	}
	if n.activityText = "sweep (bob)"; !strings.HasPrefix(n.activity(), "paused by ann; ") ||
		n.Owner != "paused by ann" {
		t.Errorf("got %q, %+v", n.activity(), n)
	}
}
