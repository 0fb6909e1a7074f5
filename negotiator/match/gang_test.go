package match

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestRandomGangs checks plans of random cells with gangs, walltimes, drains and
// reservations. No gang may be placed in part, and no unit may run on a machine that is
// drained before it ends. A matcher with a history decides like a new one.
func TestRandomGangs(t *testing.T) {
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 3))
		s := randomCell(t, rng)
		s.Now = time.Unix(1000, 0)
		s.Backfill = BackfillSettings{Mode: BackfillMode(rng.IntN(3)), Depth: 3, MaxWait: time.Second}
		for _, r := range s.Requests {
			r.Walltime = time.Duration(rng.IntN(3)) * 100 * time.Second
			if rng.IntN(2) == 0 {
				r.Gang = 2 + rng.IntN(4)
				r.Wanted = r.Wanted / r.Gang * r.Gang
				r.Class.Scatter = rng.IntN(2) == 0
			}
		}
		for _, m := range s.Machines {
			if rng.IntN(3) == 0 {
				s.Drains = append(s.Drains, MachineDrain{Node: m.Name, From: time.Unix(int64(950+rng.IntN(300)), 0)})
			}
		}
		matcher := NewMatcher()
		for range 3 {
			plan := matcher.Plan(s)
			checkPlan(t, s, plan)
			checkGangs(t, seed, s, plan)
			if got, want := grantsText(plan.Grants),
				grantsText(NewMatcher().Plan(newMatcherCopy(s)).Grants); got != want {
				t.Fatalf("seed %d: a matcher that remembers plans\n%sand one that does not\n%s", seed, got, want)
			}
			changeCell(t, rng, s)
			for _, r := range s.Requests {
				if r.Gang > 1 {
					r.Wanted = r.Wanted / r.Gang * r.Gang
				}
			}
		}
	}
}

func checkGangs(t *testing.T, seed uint64, s *Snapshot, plan Plan) {
	t.Helper()
	type seat struct {
		gang    int
		machine string
	}
	gangs, on := map[int]int{}, map[seat]bool{}
	for _, g := range plan.Grants {
		if (g.Request.Gang > 1) != (g.Gang != 0) {
			t.Fatalf("seed %d: request %v, of which %d start together, gets gang %d", seed, g.Request.Key,
				g.Request.Gang, g.Gang)
		}
		if g.Gang != 0 {
			if gangs[g.Gang] += g.Units; g.Request.Class.Scatter && on[seat{g.Gang, g.Machine.Name}] {
				t.Fatalf("seed %d: gang %d has two units on %s", seed, g.Gang, g.Machine.Name)
			}
			if on[seat{g.Gang, g.Machine.Name}] = true; g.Request.Class.Scatter && g.Units > 1 {
				t.Fatalf("seed %d: gang %d has %d units on %s", seed, g.Gang, g.Units, g.Machine.Name)
			}
			if gangs[g.Gang] > g.Request.Gang {
				t.Fatalf("seed %d: %d units of a gang of %d", seed, gangs[g.Gang], g.Request.Gang)
			}
		}
		for _, d := range s.Drains {
			if ends := s.Now.Add(g.Request.Walltime); d.Node == g.Machine.Name &&
				(g.Request.Walltime == 0 || ends.After(d.From)) {
				t.Fatalf("seed %d: %v runs on %s after %v", seed, g.Request.Key, d.Node, d.From)
			}
		}
	}
	for _, g := range plan.Grants {
		if g.Gang != 0 && gangs[g.Gang] != g.Request.Gang {
			t.Fatalf("seed %d: %d units of a gang of %d", seed, gangs[g.Gang], g.Request.Gang)
		}
	}
}
