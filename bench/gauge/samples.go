// Package gauge has what the measurements of this tree share: samples of durations and of
// numbers, and information from /proc about the measured processes.
package gauge

import (
	"slices"
	"time"
)

// DurationSamples are durations of repeated runs of the same operation.
type DurationSamples []time.Duration

// Percentile returns a percentile, rounded to the precision of clock and noise; 0 without
// samples.
func (s DurationSamples) Percentile(percent int) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[(len(sorted)-1)*percent/100].Round(10 * time.Microsecond)
}

// FigureSamples are results of repeated runs of the same measurement.
type FigureSamples []float64

// Median returns the median, for an even number the upper of the two in the middle; 0
// without samples.
func (f FigureSamples) Median() float64 {
	if len(f) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(f))[len(f)/2]
}
