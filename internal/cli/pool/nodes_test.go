package pool

import (
	"testing"
	"time"

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

// TestPilotNode: a pilot says whose it is, from where, and how long it stays.
func TestPilotNode(t *testing.T) {
	now := time.Unix(1e9, 0)
	for text, want := range map[string]string{
		`PilotOwner = "ada"; PilotProvider = "uni"; PilotUntil = 1000007200`: "pilot of ada from uni for 2h0m",
		`PilotOwner = "ada@login1"; PilotUntil = 1000000020`:                 "pilot of ada@login1, which ends now",
		`PilotOwner = "ada"; PilotUntil = 9999999999999`:                     "pilot of ada",
	} {
		ad, err := classad.Parse(`[Name = "p"; ` + text + `]`)
		if err != nil {
			t.Fatal(err)
		}
		if got := pilotText(document.NodeOf(ad).Pilot, now); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
