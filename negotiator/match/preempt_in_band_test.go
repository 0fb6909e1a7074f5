package match

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// TestPriorities checks in random cells that priority displaces only what it may. It does
// so for no more units than have it, and not at all unless the site allows it.
func TestPriorities(t *testing.T) { checkRandomPriorities(t, 3000) }

func checkRandomPriorities(t testing.TB, cells uint64) {
	displaced := 0
	for seed := range cells {
		rng := rand.New(rand.NewPCG(seed, 9))
		s := randomTenants(t, rng)
		r := s.Requests[0]
		r.Submitter, r.Band = fairshare.Submitter{Owner: "u"}, roost.PriorityBand(rng.IntN(2))
		r.Priority, r.Wanted = int32(rng.IntN(10)), 1+rng.IntN(4)
		for _, m := range s.Machines {
			for i := range m.Claims {
				m.Claims[i].Priority, m.Claims[i].Attempt = int32(rng.IntN(8)), int64(rng.IntN(4))
				m.Claims[i].Rank = 9 // no machine prefers the request
			}
		}
		off := grantsText(NewMatcher().Plan(newMatcherCopy(s)).Grants)
		r.PriorityUnits = rng.IntN(1 + r.Wanted)
		if got := grantsText(NewMatcher().Plan(newMatcherCopy(s)).Grants); got != off {
			t.Fatalf("seed %d: priority counts although it is off:\n%s\nbefore:\n%s", seed, got, off)
		}
		s.Preemption.InBand = &InBandPreemption{Step: 1 + rng.IntN(3), MinRuntime: 5 * time.Second, MaxAttempts: 2}
		n := checkPriorities(t, seed, s)
		if displaced += n; r.PriorityUnits == 0 && n > 0 {
			t.Fatalf("seed %d: no unit has the priority, and %d displace by it", seed, n)
		}
	}
	if displaced < int(cells)/60 {
		t.Fatalf("only %d grants displace by priority", displaced)
	}
}

// checkPriorities plans and returns how many grants displace by priority.
func checkPriorities(t testing.TB, seed uint64, s *Snapshot) (displacing int) {
	t.Helper()
	f, r, placed := s.Preemption.InBand, s.Requests[0], 0
	for _, g := range NewMatcher().Plan(newMatcherCopy(s)).Grants {
		byPriority := false
		for _, id := range g.Victims {
			for _, c := range g.Machine.Claims {
				if c.ID != id || c.Band != r.Band {
					continue
				}
				byPriority = true
				if int(r.Priority)-int(c.Priority) < f.Step || c.Attempt > int64(f.MaxAttempts) || c.losesTask() ||
					s.Now.Unix()-c.TaskStarted < 5 {
					t.Fatalf("seed %d: %+v goes for priority %d", seed, c, r.Priority)
				}
			}
		}
		if byPriority {
			displacing++
			if placed >= r.PriorityUnits {
				t.Fatalf("seed %d: unit %d displaces, and %d have the priority", seed, placed+1, r.PriorityUnits)
			}
		}
		placed += g.Units
	}
	return displacing
}
