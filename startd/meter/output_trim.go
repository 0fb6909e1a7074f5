package meter

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/roost-batch/roost/internal/outputfile"
	"github.com/roost-batch/roost/startd/starterclient"
)

// WatchOutput marks when captured output was written, until ctx ends. It removes the
// oldest output of services that have more than they may have. Between two looks a task
// may write more.
func (s *Meters) WatchOutput(ctx context.Context) {
	tick := time.NewTicker(outputCheckInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, t := range s.sortedMeters() {
			s.recordTimes(t)
			if t.Logs.Files > 0 && !t.untrimmed.Load() {
				s.trimOutput(t)
			}
		}
	}
}

// recordTimes marks how far both streams of an attempt are written now. Marks that cannot
// be stored are only less exact times.
func (s *Meters) recordTimes(t *attemptMeter) {
	for i, stderr := range []bool{false, true} {
		err := t.times[i].Record(starterclient.CapturedPath(t.IO, stderr), time.Now())
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !t.untimed {
			t.untimed = true
			s.opt.Log.Warn("the times of captured output cannot be stored", "attempt", t.ID, "err", err)
		}
	}
}

// trimOutput keeps both streams of an attempt within its bounds. Where that cannot be
// done the attempt ends at the limit, as those of other jobs do.
func (s *Meters) trimOutput(t *attemptMeter) {
	for _, stderr := range []bool{false, true} {
		_, err := outputfile.Trim(starterclient.CapturedPath(t.IO, stderr), t.Logs)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && t.untrimmed.CompareAndSwap(false, true) {
			s.opt.Log.Warn("the oldest output of a service cannot be removed; its task ends at the limit of captured "+
				"output", "attempt", t.ID, "err", err)
		}
	}
}
