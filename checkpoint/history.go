package checkpoint

import (
	"math"
	"time"
)

// History is what is known of a machine's failures: how long it ran, and how often that ended badly (a crash, a lost task). Both fade, so
// that a repaired machine is trusted again; so the failures are no whole number.
type History struct {
	Up       time.Duration
	Failures float64
}

// Of a machine that nothing is known of it is supposed that it fails once in Prior; what happened longer ago than HalfLife of running counts
// less than half.
const (
	Prior    = 30 * 24 * time.Hour
	HalfLife = 60 * 24 * time.Hour
)

// After is the history after some more time of running, at the end of which there were so many failures.
func (h History) After(up time.Duration, failures int) History {
	up = max(0, up)
	fade := math.Exp2(-float64(up) / float64(HalfLife))
	return History{time.Duration(float64(h.Up)*fade) + up, h.Failures*fade + float64(max(0, failures))}
}

// MTBF estimates the mean time between failures: the inverse of the mean of their rate, which is a gamma distribution before anything was
// seen, worth one failure in Prior, and stays one with what was seen (Poisson).
func (h History) MTBF() time.Duration {
	up := max(0, h.Up)
	return time.Duration((float64(Prior) + float64(up)) / (1 + max(0, h.Failures)))
}
