//go:build plants

package feed

import (
	"testing"

	"github.com/roost-batch/roost/internal/mutant"
	"github.com/roost-batch/roost/internal/mutant/mutanttest"
)

// TestFeedMutants checks that the crashes of the feed find each bug that loses entries,
// and nothing without one.
func TestFeedMutants(t *testing.T) {
	mutanttest.CheckFound(t, func(t testing.TB) {
		for seed := range uint64(3) {
			runCrashes(t, seed, map[string]bool{})
		}
	}, mutant.FeedCutEarly, mutant.FeedRestartForgets)
}
