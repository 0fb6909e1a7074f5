package startd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
)

// TestReclaim checks that batch work gets what production asked for and does not use. It
// comes back when production wants it, and production never notices.
func TestReclaim(t *testing.T) {
	t.Parallel()
	p := newTestStartd(t)
	cgroupsOf(t, p)
	p.stop()
	own := &p.node.Startds[0]
	own.Resources.Memory, own.Limits.Processes = 512*roost.MiB, 100
	own.Limits.Reclaim, own.Limits.ReclaimAfter = roost.ReclaimAggressive, time.Second
	own.Limits.Enforce, own.Limits.Sandbox = config.EnforceAuto, config.EnforceNever
	p.start()
	s := p.connect("host1", 1)
	grow := filepath.Join(p.node.Dir, "grow")
	prod := s.requestClaim(claimRequest("production", 400)).GetClaim()
	a := s.activate(prod, s.shell("while [ ! -e "+grow+
		" ]; do sleep 0.1; done; dd if=/dev/zero bs=300M count=1 | sleep 1000"), false)
	s.awaitStarted(a)
	if r := s.requestClaim(claimRequest("batch", 256)); r.GetClaim() != 0 {
		t.Fatal("batch work was given what production has only just begun to use")
	}
	p.ads.awaitAd(t, "lends", func(_ *wire.AdUpdate, ad *classad.Ad) bool {
		reclaimed, _ := ad.Real(roost.AttrReclaimedMemory)
		free, _ := ad.Real(roost.AttrMemory)
		return reclaimed > 300 && free == 112
	})
	if r := s.requestClaim(claimRequest("production", 256)); r.GetClaim() != 0 {
		t.Fatal("production was given what is lent")
	}
	reply := s.requestClaim(claimRequest("batch", 256))
	if reply.GetClaim() == 0 {
		t.Fatalf("no claim: %s", reply.GetReason())
	}
	// What it uses does not fit beside what production uses later, whatever is estimated.
	b := s.activate(reply.GetClaim(), s.shell("dd if=/dev/zero bs=180M count=1 | sleep 1000 & "+
		"trap 'exit 7' TERM; while :; do sleep 0.1; done"), false)
	s.awaitStarted(b)
	p.ads.awaitAd(t, "names what runs in reclaimed room", func(_ *wire.AdUpdate, ad *classad.Ad) bool {
		return strings.Contains(ad.String(), `Band = "batch"`) && strings.Contains(ad.String(), "Reclaimed = true") &&
			strings.Contains(ad.String(), "ReservedMemory")
	})
	group, ok := cgroupsOf(t, p).FindGroup(slot.ClaimID(reply.GetClaim()).String())
	if !ok {
		t.Fatal("the claim has no group")
	}
	await(t, "its group uses memory", func() bool {
		usage, err := group.Usage()
		return err == nil && usage.Processes > 0 && usage.Memory > 180*roost.MiB
	})
	if err := os.WriteFile(grow, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	x := s.awaitOnlyExit(b)
	if want := "its memory was reclaimed by 1001[0].host1 of ann (production)"; x.GetStatus().GetCause() !=
		wire.Cause_CAUSE_PREEMPTED || x.GetStatus().GetReason() != want {
		t.Fatalf("got %s: %s", exitText(x), x.GetStatus().GetReason())
	}
	s.acknowledge(b)
	if lost := s.nextMessage("the loss of its claim").GetLost(); lost.GetClaim() != reply.GetClaim() {
		t.Fatalf("got %v", lost)
	}
	s.vacate(a, true)
	if x := s.awaitOnlyExit(a); x.GetStatus().GetCause() != wire.Cause_CAUSE_REMOVED {
		t.Fatalf("production did not live until it was removed: %s", exitText(x))
	}
}

// TestReclaimSurvives: a startd that is started anew does not end what runs in reclaimed
// room.
func TestReclaimSurvives(t *testing.T) {
	t.Parallel()
	p := newTestStartd(t)
	p.stop()
	own := &p.node.Startds[0]
	own.Resources.Memory, own.Limits.Reclaim, own.Limits.ReclaimAfter = 512*roost.MiB, roost.ReclaimAggressive,
		time.Second
	p.start()
	s := p.connect("host1", 1)
	prod := s.requestClaim(claimRequest("production", 400)).GetClaim()
	a := s.activate(prod, s.shell("sleep 1000"), false)
	s.awaitStarted(a)
	p.ads.awaitAd(t, "lends", func(_ *wire.AdUpdate, ad *classad.Ad) bool {
		reclaimed, _ := ad.Real(roost.AttrReclaimedMemory)
		return reclaimed > 300
	})
	claim := s.requestClaim(claimRequest("batch", 256)).GetClaim()
	b := s.activate(claim, s.shell("sleep 1000"), false)
	s.awaitStarted(b)
	p.kill()
	p.start()
	s = p.connect("host1", 2)
	p.ads.awaitAd(t, "lends again", func(_ *wire.AdUpdate, ad *classad.Ad) bool {
		reclaimed, _ := ad.Real(roost.AttrReclaimedMemory)
		return reclaimed > 50 && strings.Contains(ad.String(), "Reclaimed = true")
	})
	for _, ref := range []*wire.AttemptRef{b, a} {
		s.vacate(ref, true)
		if x := s.awaitOnlyExit(ref); x.GetStatus().GetCause() != wire.Cause_CAUSE_REMOVED {
			t.Fatalf("it did not live until it was removed: %s, %s", exitText(x), x.GetStatus().GetReason())
		}
	}
}

// claimRequest is a wish for so many MiB by a task of that band.
func claimRequest(band string, mib int64) func(*wire.ClaimRequest) {
	return func(r *wire.ClaimRequest) {
		r.Ad, r.Band = "[]", band
		r.Resources = &wire.Resources{MilliCpu: 1000, Memory: mib << 20}
	}
}
