package startd

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
)

// TestOwnerStaysAndSaves: a task that stands still for its machine's owner leaves with a
// checkpoint, and does not run for that.
func TestOwnerStaysAndSaves(t *testing.T) {
	t.Parallel()
	before, g := withFakeGuard(t, 300*time.Millisecond)
	p := newTestStartdWith(t, before)
	p.awaitAvailable()
	u := p.ads.awaitAd(t, "is there", func(u *wire.AdUpdate, _ *classad.Ad) bool { return u.GetAd() != "" })
	if ad, err := classad.Parse(u.GetAd()); err != nil {
		t.Fatal(err)
	} else if can, _ := ad.Bool(roost.AttrHasCheckpoint); !can {
		t.Skip("SKIPPED: this machine takes no checkpoints")
	}
	s := p.connect("host1", 1)
	prog, count := s.startCounter("count")
	key := make([]byte, 32)
	rand.Read(key)
	prog.Checkpoint = &wire.CheckpointPolicy{IntervalNs: -1, OnVacate: true, Key: key, Next: 1}
	a := s.activate(s.claim(), prog, false)
	s.awaitStarted(a)
	await(t, "it runs", func() bool { return count() > 0 })
	g.awaitActed(g.pressKey())
	frozenCount := count()
	var taken *wire.CheckpointTaken
	for {
		m := s.nextMessage("news of its end")
		if m.GetTaken() != nil {
			taken = m.GetTaken()
		}
		if x := m.GetExited(); x != nil {
			if st := x.GetStatus(); st.GetCause() != wire.Cause_CAUSE_VACATED ||
				!strings.Contains(st.GetReason(), "n1") {
				t.Errorf("got %v", st)
			}
			break
		}
	}
	if taken.GetError() != "" || taken.GetImage() == nil || taken.GetReason() != "vacate" {
		t.Errorf("taken: %v", taken)
	}
	if got := count(); got != frozenCount {
		t.Errorf("it ran on for %d bytes", got-frozenCount)
	}
}
