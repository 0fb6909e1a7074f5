package checkpoint

import (
	"math"
	"time"
)

// FailureHistory is what is known of a machine's failures: how long it ran, and how often
// that ended badly (a crash, a lost task). Both fade, so that a repaired machine is
// trusted again; so the failures are no whole number.
type FailureHistory struct {
	Up       time.Duration
	Failures float64
}

// Of a machine that nothing is known of it is supposed that it fails once in PriorMTBF;
// what happened longer ago than HistoryHalfLife of running counts less than half.
const (
	PriorMTBF       = 30 * 24 * time.Hour
	HistoryHalfLife = 60 * 24 * time.Hour
)

// After is the history after some more time of running, at the end of which there were so
// many failures.
func (h FailureHistory) After(up time.Duration, failures int) FailureHistory {
	up = max(0, up)
	fade := math.Exp2(-float64(up) / float64(HistoryHalfLife))
	return FailureHistory{time.Duration(float64(h.Up)*fade) + up, h.Failures*fade + float64(max(0, failures))}
}

// MTBF estimates the mean time between failures: the inverse of the mean of their rate,
// which is a gamma distribution before anything was seen, worth one failure in PriorMTBF,
// and stays one with what was seen (Poisson).
func (h FailureHistory) MTBF() time.Duration {
	up := max(0, h.Up)
	return time.Duration((float64(PriorMTBF) + float64(up)) / (1 + max(0, h.Failures)))
}
