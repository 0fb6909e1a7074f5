package view

import (
	"testing"
	"time"
)

// TestPoolFresh checks that a snapshot that took long to read is fresh for longer, and
// never until it is stale.
func TestPoolFresh(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{0: poolFresh, 50 * time.Millisecond: poolFresh,
		300 * time.Millisecond: 3 * time.Second, time.Minute: maxPoolFresh} {
		if got := (&poolSnapshot{took: took}).freshFor(); got != want || got >= poolStale {
			t.Errorf("read in %v: fresh for %v, want %v", took, got, want)
		}
	}
}
