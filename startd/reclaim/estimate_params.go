package reclaim

import (
	"time"

	"github.com/roost-batch/roost"
)

// EstimateParams define how reservations follow use.
type EstimateParams struct {
	// after its start a task's reservation is its limit for this time, as its need is
	// unknown
	SettlingTime time.Duration
	HalfLife     time.Duration // time in which the distance to the target halves
	Margin       float64       // margin above the use, as a fraction of the use
	Floor        float64       // additional margin, as a fraction of the limit: the use of an idle task says little
}

// ScaledTo returns the parameters for another settling time, with the half-life scaled
// alike. Zero leaves them unchanged.
func (p EstimateParams) ScaledTo(startDelay time.Duration) EstimateParams {
	if startDelay > 0 {
		p.SettlingTime, p.HalfLife = startDelay,
			time.Duration(float64(p.HalfLife)*startDelay.Seconds()/p.SettlingTime.Seconds())
	}
	return p
}

// DefaultSettlingTime is how long startup transients last (Borg §5.5).
const DefaultSettlingTime = 300 * time.Second

// ParamsOf returns the parameters of a level. With roost.ReclaimOff the reservation is
// the limit.
func ParamsOf(l roost.ReclaimLevel) EstimateParams {
	switch l {
	case roost.ReclaimBaseline:
		return EstimateParams{DefaultSettlingTime, 20 * time.Minute, 0.50, 0.10}
	case roost.ReclaimMedium:
		return EstimateParams{DefaultSettlingTime, 12*time.Minute + 30*time.Second, 0.30, 0.06}
	case roost.ReclaimAggressive:
		return EstimateParams{DefaultSettlingTime, 5 * time.Minute, 0.10, 0.02}
	}
	return EstimateParams{SettlingTime: DefaultSettlingTime, HalfLife: time.Minute, Floor: 1}
}
