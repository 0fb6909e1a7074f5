package match

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestRandomSelfPlacements checks plans of random cells with random proposals. They must
// be sound, and no request may get more than it wants. Each conflict must have a reason.
func TestRandomSelfPlacements(t *testing.T) {
	for seed := range uint64(1500) {
		rng := rand.New(rand.NewPCG(seed, 21))
		s := randomCell(t, rng)
		s.Groups, s.Limits = nil, nil // what they withhold is neither granted nor a conflict
		for _, r := range s.Requests {
			r.RunLimits = nil
			for range rng.IntN(4) {
				r.SelfPlacements = append(r.SelfPlacements, SelfPlacement{
					Machine: fmt.Sprintf("m%d", rng.IntN(9)), Units: rng.IntN(4), Waiting: rng.IntN(4) == 0,
				})
			}
		}
		plan := NewMatcher().Plan(s)
		checkPlan(t, s, plan)
		got := map[*Request]int{}
		for _, g := range plan.Grants {
			got[g.Request] += g.Units
		}
		for _, c := range plan.Conflicts {
			if c.Why == "" {
				t.Fatalf("seed %d: %+v conflicts for no reason", seed, c)
			}
		}
		for r, n := range got {
			if n > r.Wanted {
				t.Fatalf("seed %d: %v gets %d of %d", seed, r.Key, n, r.Wanted)
			}
		}
	}
}
