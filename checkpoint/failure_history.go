package checkpoint

import (
	"math"
	"time"
)

// FailureHistory summarizes a machine's failures: its running time, and how often that
// ended in a crash or a lost task. Both decay, so that a repaired machine is trusted
// again; so the number of failures is not whole.
type FailureHistory struct {
	Up       time.Duration
	Failures float64
}

// A machine without history is assumed to fail once in PriorMTBF. Events longer ago than
// HistoryHalfLife of running time count less than half.
const (
	PriorMTBF       = 30 * 24 * time.Hour
	HistoryHalfLife = 60 * 24 * time.Hour
)

// After returns the history after more running time with a number of failures at its end.
func (h FailureHistory) After(up time.Duration, failures int) FailureHistory {
	up = max(0, up)
	fade := math.Exp2(-float64(up) / float64(HistoryHalfLife))
	return FailureHistory{time.Duration(float64(h.Up)*fade) + up, h.Failures*fade + float64(max(0, failures))}
}

// MTBF estimates the mean time between failures, as the inverse of the mean failure rate.
// The rate has a gamma distribution: the prior is worth one failure in PriorMTBF, and
// Poisson observations leave it a gamma distribution.
func (h FailureHistory) MTBF() time.Duration {
	up := max(0, h.Up)
	return time.Duration((float64(PriorMTBF) + float64(up)) / (1 + max(0, h.Failures)))
}
