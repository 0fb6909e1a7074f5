package reclaim

import (
	"time"

	"github.com/roost-batch/roost"
)

// EstimateParams are how reservations follow use.
type EstimateParams struct {
	SettlingTime time.Duration // from its start on, so long a task keeps its limit: it has not shown yet what it needs
	HalfLife     time.Duration // in which the distance to the aim is halved
	Margin       float64       // on top of the use, as a part of it
	Floor        float64       // and besides, as a part of the limit: the use of a task that idles says little
}

// ScaledTo are parameters under which a task is settled after another time, and all else
// takes as much longer or shorter; 0 leaves them as they are.
func (p EstimateParams) ScaledTo(settle time.Duration) EstimateParams {
	if settle > 0 {
		p.SettlingTime, p.HalfLife = settle,
			time.Duration(float64(p.HalfLife)*settle.Seconds()/p.SettlingTime.Seconds())
	}
	return p
}

// DefaultSettlingTime is how long startup transients last (Borg §5.5).
const DefaultSettlingTime = 300 * time.Second

// ParamsOf are those of a level; of roost.ReclaimOff, a margin that nothing fits below.
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
