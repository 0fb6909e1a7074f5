package reclaim

import (
	"time"

	"github.com/roost-batch/roost"
)

// Params are how reservations follow use.
type Params struct {
	Settle   time.Duration // from its start on, so long a task keeps its limit: it has not shown yet what it needs
	HalfLife time.Duration // in which the distance to the aim is halved
	Margin   float64       // on top of the use, as a part of it
	Floor    float64       // and besides, as a part of the limit: the use of a task that idles says little
}

// Within are parameters under which a task is settled after another time, and all else takes as much longer or shorter; 0 leaves them as they are.
func (p Params) Within(settle time.Duration) Params {
	if settle > 0 {
		p.Settle, p.HalfLife = settle, time.Duration(float64(p.HalfLife)*settle.Seconds()/p.Settle.Seconds())
	}
	return p
}

// Settle is how long startup transients last (Borg §5.5).
const Settle = 300 * time.Second

// ParamsOf are those of a level; of roost.ReclaimOff, a margin that nothing fits below.
func ParamsOf(l roost.Reclaim) Params {
	switch l {
	case roost.ReclaimBaseline:
		return Params{Settle, 20 * time.Minute, 0.50, 0.10}
	case roost.ReclaimMedium:
		return Params{Settle, 12*time.Minute + 30*time.Second, 0.30, 0.06}
	case roost.ReclaimAggressive:
		return Params{Settle, 5 * time.Minute, 0.10, 0.02}
	}
	return Params{Settle: Settle, HalfLife: time.Minute, Floor: 1}
}
