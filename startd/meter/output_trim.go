package meter

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/roost-batch/roost/internal/outputfile"
	"github.com/roost-batch/roost/startd/starterclient"
)

// WatchOutput removes the oldest captured output of services that have more than they may
// have, until ctx ends. Between two looks a task may write more.
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
			if t.Logs.Files > 0 && !t.untrimmed.Load() {
				s.trimOutput(t)
			}
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
