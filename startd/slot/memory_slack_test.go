package slot

import (
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/startd/reclaim"
)

// TestWantedSlack: what is granted follows what is idle, in steps. It is at most the
// percentage of the request, and never below what is used.
func TestWantedSlack(t *testing.T) {
	const mib = roost.MiB
	for _, c := range []struct{ used, idle, want roost.Bytes }{
		{900, 0, 0}, {900, 4000, 512}, {900, 100, 96}, {900, 31, 0}, {1100, 0, 96}, {1024 + 500, 0, 512},
		{1100, 500, 512}, {1100, 40, 96}, {3000, 0, 512},
	} {
		claim := Claim{Resources: roost.Resources{Memory: 1024 * mib},
			lastUsage: reclaim.ResourceAmount{Memory: c.used * mib}}
		if got := claim.wantedSlack(c.idle*mib, 50); got/mib != c.want {
			t.Errorf("uses %d MiB, %d idle: got %v, want %d MiB", c.used, c.idle, got, c.want)
		}
	}
}

// slackTable has two claims of 1 GiB with memory slack, the second of which runs too, and
// one without.
func slackTable(t *testing.T, band string) (*scriptRunner, []*Claim) {
	s := &scriptRunner{t: t, core: newTestTable(t, QueueOptions{})}
	s.core.opt.MemorySlack = 100
	for id := 1; id <= 3; id++ {
		r := s.requestClaim(stepArguments{"band": band, "grant": ClaimID(id).String()}, "s", 0)
		r.Info.MemorySlack = id < 3
		claim := &Claim{ID: s.core.ids.take(), Schedd: "s", Owner: r.Owner, Info: r.Info, Resources: r.Resources,
			State: Busy, Running: true, queue: nowhere}
		if !s.core.free.FindPlacement(claim.request(), -1, &claim.Placement) {
			t.Fatal("there is no room")
		}
		s.core.addClaim(claim)
		s.core.takeResources(claim)
	}
	return s, s.core.claims.sorted()
}

// sampleSlack takes in a sample of what claims use, in MiB, and returns the effects.
func (s *scriptRunner) sampleSlack(available roost.Bytes, use ...roost.Bytes) (effects []Effect) {
	all := map[ClaimID]reclaim.ResourceAmount{}
	for i, n := range use {
		all[ClaimID(i+1)] = reclaim.ResourceAmount{Memory: n * roost.MiB}
	}
	s.core.effects = nil
	s.core.AddUsageSamples(s.now, all, MemoryPressure{Available: available * roost.MiB, Total: 8 * roost.GiB})
	return s.core.effects
}

// TestMemorySlack: idle memory is granted to claims that want it, and withdrawn. When
// memory runs out, the one that uses most of it leaves.
func TestMemorySlack(t *testing.T) {
	s, claims := slackTable(t, "batch")
	s.sampleSlack(8000, 500, 500, 500)
	if claims[0].MemorySlack != roost.GiB || claims[1].MemorySlack != roost.GiB || claims[2].MemorySlack != 0 {
		t.Fatalf("with memory idle: %v, %v, %v", claims[0].MemorySlack, claims[1].MemorySlack, claims[2].MemorySlack)
	}
	if n := len(s.sampleSlack(8000, 500, 500, 500)); n != 0 {
		t.Errorf("the same again has %d effects", n)
	}
	s.sampleSlack(700, 1500, 500, 500)
	if got := claims[0].MemorySlack; got < 476*roost.MiB || got > 540*roost.MiB {
		t.Errorf("the one that uses 476MiB more has %v", got)
	}
	if claims[1].MemorySlack != 0 {
		t.Errorf("the one that does not still has %v", claims[1].MemorySlack)
	}
	s.sampleSlack(100, 1500, 1300, 900)
	if claims[0].endReason == "" && claims[0].State == Busy {
		t.Error("the one that uses most beyond its request stays")
	}
	if claims[2].State != Busy {
		t.Error("one leaves that uses what it asked for")
	}
}

// TestNoMemorySlackForProduction: neither is it granted where the node does not.
func TestNoMemorySlackForProduction(t *testing.T) {
	s, claims := slackTable(t, "production")
	if n := len(s.sampleSlack(8000, 500, 500, 500)); n != 0 || claims[0].MemorySlack != 0 {
		t.Errorf("%d effects, and slack of %v", n, claims[0].MemorySlack)
	}
	s, claims = slackTable(t, "batch")
	s.core.opt.MemorySlack = 0
	if n := len(s.sampleSlack(8000, 500, 500, 500)); n != 0 || claims[0].MemorySlack != 0 {
		t.Errorf("where it is 0: %d effects, and slack of %v", n, claims[0].MemorySlack)
	}
}
