//go:build plants

package queue

import (
	"testing"

	"github.com/roost-batch/roost/internal/mutant"
	"github.com/roost-batch/roost/internal/mutant/mutanttest"
)

// TestDependencyMutants checks that the tests of dependencies find each bug in them, and
// nothing without one.
func TestDependencyMutants(t *testing.T) {
	mutanttest.CheckFound(t, func(t testing.TB) { checkRandomDependencies(t, 250) }, mutant.AlternativesJoined)
	mutanttest.CheckFound(t, checkAfterCorr, mutant.IndexUnchecked)
}
