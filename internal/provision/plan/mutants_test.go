//go:build plants

package plan

import (
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/mutant"
)

// TestMutants checks that the random schedules find bugs that are put in on purpose.
func TestMutants(t *testing.T) {
	for _, b := range []mutant.Mutant{mutant.CostUnbounded, mutant.StatusErrorIsEnd,
		mutant.UnansweredForgotten} {
		t.Run(b.String(), func(t *testing.T) {
			mutant.Activate(b)
			defer mutant.Activate(0)
			for seed := range uint64(60) {
				if broken := playRandom(t, seed); broken != "" {
					t.Logf("found by seed %d: %s", seed, broken)
					return
				}
			}
			t.Error("not found")
		})
	}
}

// TestSupplyMutant checks that nodes which are to come are seen to be counted.
func TestSupplyMutant(t *testing.T) {
	mutant.Activate(mutant.SupplyUncounted)
	defer mutant.Activate(0)
	o := newOuterSystem(t, cluster("c", 4))
	o.demand = []Demand{tasks("1.h", 1, 1, time.Minute)}
	if o.run(5 * time.Minute); len(o.submits) < 2 {
		t.Error("not found")
	}
}
