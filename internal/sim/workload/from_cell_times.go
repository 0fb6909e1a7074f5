package workload

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/sim/pool"
	"github.com/roost-batch/roost/negotiator/cellstate"
)

// Times in a checkpoint come from clocks that people set and from numbers that they
// wrote. A pool with invalid ones would be simulated for centuries.
const (
	latestTime      = 7258118400        // the year 2200, in unix seconds
	maxTimeDistance = 100 * 366 * 86400 // seconds: no instant is farther from the checkpoint
	// seconds by which a clock may be wrong: no task has begun later than this after the
	// checkpoint
	maxClockSkew = 86400
	maxRuntime   = 10 * 365 * 24 * time.Hour // longer tasks count as endless
)

// checkTimes refuses a checkpoint with an invalid instant. The error is of kind
// roost.Invalid, and names the machine and claim, the request, or the job.
func checkTimes(c *cellstate.CellCheckpoint) error {
	now := c.Now.Unix()
	if now <= 0 || now >= latestTime {
		return fmt.Errorf("%w: it was taken at %s, by its clock: take another one when that is right", roost.Invalid,
			c.Now.UTC().Format(time.RFC3339))
	}
	check := func(at int64, most int64, what string, of ...any) error {
		if at == 0 || at >= now-maxTimeDistance && at <= now+most {
			return nil
		}
		return fmt.Errorf("%s: %w: %s at %d, in seconds since 1970, and the checkpoint is of %d", fmt.Sprint(of...),
			roost.Invalid, what, at, now)
	}
	for _, m := range c.Machines {
		for i := range m.Claims {
			x := &m.Claims[i]
			for _, t := range []struct {
				at, most int64
				what     string
			}{{x.TaskStarted, maxClockSkew, "its task began"}, {x.WalltimeEnd, maxTimeDistance, "its task ends"},
				{x.PredictedEnd, maxTimeDistance, "its task is expected to end"}} {
				if err := check(t.at, t.most, t.what, "machine ", m.Name, ": claim ", x.ID); err != nil {
					return err
				}
			}
		}
	}
	for _, a := range c.Requests {
		if err := check(a.Oldest/1e9, maxClockSkew, "it was first wanted", "request ", a.Key.ID, " of schedd ",
			a.Key.Schedd); err != nil {
			return err
		}
	}
	for i := range c.Jobs {
		if err := check(c.Jobs[i].Submitted/1e9, maxClockSkew, "it was submitted", "job ", c.Jobs[i].ID); err != nil {
			return err
		}
	}
	return nil
}

// boundedRuntime returns a run time, and ForEver in place of one that is too long. It
// counts the latter.
func (x *checkpointCell) boundedRuntime(d time.Duration) time.Duration {
	if d <= maxRuntime {
		return d
	}
	x.unboundedRuns++
	return pool.ForEver
}
