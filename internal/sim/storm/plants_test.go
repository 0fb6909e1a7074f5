//go:build plants

package storm

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/plant"
	"github.com/roost-batch/roost/internal/sim/audit"
)

// within is how many seeds each bug has to be found in.
const within = 1000

// Each bug that is planted is found, by the promise that it breaks: so that seeds are clean says something. ROOST_PLANTS names those that are tried, with
// commas between them; by itself all.
func TestPlants(t *testing.T) {
	only := strings.FieldsFunc(os.Getenv("ROOST_PLANTS"), func(r rune) bool { return r == ',' })
	for _, b := range plant.All() {
		if len(only) > 0 && !slices.Contains(only, b.String()) {
			continue
		}
		t.Run(b.String(), func(t *testing.T) {
			plant.Put(b)
			defer plant.Put(0)
			others := map[audit.Promise]int{}
			for seed := uint64(1); seed <= within; seed++ {
				c := Draw(seed, DefaultSize())
				c.Unchecked = true
				for _, breach := range Play(c).Breaches {
					if breach.Promise == audit.Promise(b.Promise()) {
						t.Logf("P%d: found by seed %d: %s; before that: %v", b.Promise(), seed, breach.Text, others)
						return
					}
					others[breach.Promise]++
				}
			}
			t.Errorf("P%d: not found by %d seeds; what was: %v", b.Promise(), within, others)
		})
	}
}
