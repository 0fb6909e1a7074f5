//go:build plants

package autoscale

import (
	"testing"

	"github.com/roost-batch/roost/internal/mutant"
)

// TestMutants activates the bug of this package, and checks that random loads find it.
func TestMutants(t *testing.T) {
	mutant.Activate(mutant.ScaledPastMax)
	defer mutant.Activate(0)
	for seed := range uint64(100) {
		if outside(t, seed) {
			return
		}
	}
	t.Error("the bounds of services hold without the code that holds them")
}
