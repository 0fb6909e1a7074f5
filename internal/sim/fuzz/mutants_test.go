//go:build plants

package fuzz

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/mutant"
	"github.com/roost-batch/roost/internal/sim/audit"
)

// plantedSeeds is the number of seeds within which each mutant must be found.
const plantedSeeds = 1500

// TestMutants checks that the runs find each mutant, by the guarantee that it violates.
// That gives clean seeds their meaning. ROOST_PLANTS names the mutants to try, separated
// by commas; without it all are tried.
func TestMutants(t *testing.T) {
	only := strings.FieldsFunc(os.Getenv("ROOST_PLANTS"), func(r rune) bool { return r == ',' })
	for _, b := range mutant.All() {
		if len(only) > 0 && !slices.Contains(only, b.String()) {
			continue
		}
		if b == mutant.FlowPartDoubled || b == mutant.FlowPartLost || b == mutant.HalfEpochSaved {
			continue // the simulator has no flows: the random ones of package schedd/queue find these
		}
		if b >= mutant.SupplyUncounted {
			continue // nor has it provisioners or accounts: internal/provision, schedd/feed and the store find these
		}
		t.Run(b.String(), func(t *testing.T) {
			mutant.Activate(b)
			defer mutant.Activate(0)
			others := map[audit.Guarantee]int{}
			for seed := uint64(1); seed <= plantedSeeds; seed++ {
				c := DrawCase(seed, DefaultSize())
				c.NoSelfCheck = true
				for _, violation := range RunCase(c).Violations {
					if violation.Guarantee == audit.Guarantee(b.Guarantee()) {
						t.Logf("P%d: found by seed %d: %s; before that: %v", b.Guarantee(), seed,
							violation.Description, others)
						return
					}
					others[violation.Guarantee]++
				}
			}
			t.Errorf("P%d: not found by %d seeds; what was: %v", b.Guarantee(), plantedSeeds, others)
		})
	}
}
