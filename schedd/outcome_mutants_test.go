//go:build plants

package schedd

import (
	"testing"

	"github.com/roost-batch/roost/internal/mutant"
	"github.com/roost-batch/roost/internal/mutant/mutanttest"
)

// TestOutcomeMutants checks that an outcome that is told before it is on disk is found.
func TestOutcomeMutants(t *testing.T) {
	mutanttest.CheckFound(t, checkOutcomes, mutant.OutcomeReportedEarly)
}
