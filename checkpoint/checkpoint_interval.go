package checkpoint

import (
	"math"
	"time"
)

// Bounds of a chosen interval. Below the first, checkpoints cost the daemons more than
// the task is worth. Beyond the second, an estimate of the failure rate is not reliable
// enough.
const (
	MinInterval = 30 * time.Second
	MaxInterval = 4 * time.Hour
)

// MaxRestoreFailures is how many attempts that could not be restored from an image make
// the image bad. The task then continues from the image before it.
const MaxRestoreFailures = 2

// DalyInterval returns the higher-order optimum of the checkpoint interval. The source is
// J. T. Daly, A higher order estimate of the optimum checkpoint interval for restart
// dumps, FGCS 22(3), 2006, equation 37. With x = cost / (2 mtbf) it is
//
//	sqrt(2 cost mtbf) (1 + sqrt(x)/3 + x/9) - cost   for x < 1
//	mtbf                                             otherwise
//
// The optimum does not depend on the cost of a restart.
func DalyInterval(cost, mtbf time.Duration) time.Duration {
	c, m := seconds(cost), seconds(mtbf)
	if m <= 0 {
		return 0
	}
	x := c / (2 * m)
	if x >= 1 {
		return mtbf
	}
	return clampInterval(math.Sqrt(2*c*m)*(1+math.Sqrt(x)/3+x/9) - c)
}

// Interval returns DalyInterval clamped to shortest and longest; 0 for either means
// MinInterval and MaxInterval.
func Interval(cost, mtbf, shortest, longest time.Duration) time.Duration {
	if shortest <= 0 {
		shortest = MinInterval
	}
	if longest <= 0 {
		longest = MaxInterval
	}
	return min(max(DalyInterval(cost, mtbf), shortest), max(longest, shortest))
}

func seconds(d time.Duration) float64 { return max(0, d.Seconds()) }

func clampInterval(seconds float64) time.Duration {
	const most = float64(math.MaxInt64 / time.Second / 2)
	return time.Duration(min(max(seconds, 0), most) * float64(time.Second))
}

// NextCheckpoint returns when the next periodic checkpoint of an attempt must start, as a
// time since the attempt's start. The result is false if there is none. asked is the
// job's own interval: 0 to choose one, below 0 for none. last is the end of the last
// checkpoint, or the start of the attempt. cost is how long the last checkpoint stopped
// the task, or 0 before the first, which then follows after the shortest interval to
// measure the cost. After failed failures in a row the interval is doubled for each of
// them.
func NextCheckpoint(asked, last, cost, mtbf time.Duration, failed int) (time.Duration, bool) {
	if asked < 0 {
		return 0, false
	}
	interval := asked
	switch {
	case interval == 0 && cost == 0:
		interval = MinInterval
	case interval == 0:
		interval = Interval(cost, mtbf, 0, 0)
	}
	for range min(failed, 10) {
		interval = min(2*interval, max(MaxInterval, asked))
	}
	return last + interval, true
}
