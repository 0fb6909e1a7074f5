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

// plantedSeeds is how many seeds each bug has to be found in.
const plantedSeeds = 1000

// Each bug that is planted is found, by the promise that it breaks: so that seeds are
// clean says something. ROOST_PLANTS names those that are tried, with commas between
// them; by itself all.
func TestMutants(t *testing.T) {
	only := strings.FieldsFunc(os.Getenv("ROOST_PLANTS"), func(r rune) bool { return r == ',' })
	for _, b := range mutant.All() {
		if len(only) > 0 && !slices.Contains(only, b.String()) {
			continue
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
