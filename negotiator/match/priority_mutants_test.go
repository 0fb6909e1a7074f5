//go:build plants

package match

import (
	"testing"

	"github.com/roost-batch/roost/internal/mutant"
	"github.com/roost-batch/roost/internal/mutant/mutanttest"
)

// TestPriorityMutants checks that random cells find each bug in how priority displaces,
// and nothing without one.
func TestPriorityMutants(t *testing.T) {
	mutanttest.CheckFound(t, func(t testing.TB) { checkRandomPriorities(t, 1000) }, mutant.PriorityUnitsIgnored,
		mutant.PriorityStepIgnored)
}
