package slot

import (
	"time"

	"github.com/roost-batch/roost/gpu"
)

// RunningTask is a batch task that holds a part of a unit, and for how long still.
type RunningTask struct {
	Placement gpu.Placement
	Remaining time.Duration
}

// QueuedTask is a batch task that waits for a unit, and how long it will run.
type QueuedTask struct {
	Request gpu.DeviceRequest
	Runtime time.Duration
}

// PredictWait predicts how long a request would wait behind those that wait for a unit.
// It simulates how the running tasks end, one after the other, and the waiting ones start
// in turn (HRM §4.2, algorithm 1, function simulaterun). In the paper a small task may go
// before a large one that does not fit; here none may, because the queue does not work
// that way. If ok is false, the request would never start, because of what others than
// batch tasks hold.
func PredictWait(free *gpu.FreeResources, unit, limit int, running []RunningTask, waiting []QueuedTask,
	r gpu.DeviceRequest) (wait time.Duration, ok bool) {
	f := free.Clone()
	f.SetReclaim(false) // what is lent may be wanted back before
	f.SetQueue(unit, gpu.UnitQueue{})
	type end struct {
		at time.Duration
		p  gpu.Placement
	}
	ends := make([]end, 0, len(running)+len(waiting))
	for _, run := range running {
		ends = append(ends, end{run.Remaining, run.Placement})
	}
	for now := time.Duration(0); ; {
		for limit == 0 || len(ends) < limit {
			next := r
			if len(waiting) > 0 {
				next = waiting[0].Request
			}
			var p gpu.Placement
			if !f.FindPlacement(next, unit, &p) {
				break
			}
			if len(waiting) == 0 {
				return now, true
			}
			f.TakePlacement(p)
			ends = append(ends, end{now + waiting[0].Runtime, p})
			waiting = waiting[1:]
		}
		if len(ends) == 0 {
			return 0, false
		}
		first := 0
		for i := range ends {
			if ends[i].at < ends[first].at {
				first = i
			}
		}
		now = max(now, ends[first].at)
		f.ReturnPlacement(ends[first].p)
		ends[first] = ends[len(ends)-1]
		ends = ends[:len(ends)-1]
	}
}
