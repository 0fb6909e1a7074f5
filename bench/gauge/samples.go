// Package gauge is what the measurements of this tree share: samples of durations and of
// numbers, and what /proc says of the processes that are measured.
package gauge

import (
	"slices"
	"time"
)

// DurationSamples are how long the same thing took, each time.
type DurationSamples []time.Duration

// Percentile returns a percentile, rounded to what the clock and the noise allow; 0 of no
// samples.
func (s DurationSamples) Percentile(percent int) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[(len(sorted)-1)*percent/100].Round(10 * time.Microsecond)
}

// FigureSamples are what the same measurement gave, each time.
type FigureSamples []float64

// Median returns the one in the middle, of an even number the upper of the two; 0 of
// none.
func (f FigureSamples) Median() float64 {
	if len(f) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(f))[len(f)/2]
}
