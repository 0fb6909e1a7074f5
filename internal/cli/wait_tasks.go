package cli

import (
	"context"
	"io"

	"github.com/roost-batch/roost/internal/wire"
)

// watchTasks follows single tasks until they have ended. The schedd watches whole jobs:
// whenever something happens to theirs, it is asked about the tasks.
func (c *invocation) watchTasks(sel *wire.Selection, view progressDisplay) (*jobProgress, error) {
	t := newJobProgress()
	s, err := c.connectSchedd()
	if err != nil {
		return t, err
	}
	return t, c.retry(watchTimeout, func(ctx context.Context, alive func()) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := s.Watch(ctx, &wire.WatchRequest{Selection: sel, IntervalMs: 100})
		if err != nil {
			return err
		}
		for {
			if _, err := stream.Recv(); err == io.EOF {
				return nil
			} else if err != nil {
				return decodeError(err)
			}
			alive()
			rows, err := c.queryJobs(&wire.QueryRequest{Selection: sel, Tasks: true, History: true})
			if err != nil {
				return err
			}
			for _, row := range rows {
				row.Tasks, row.Counts = 1, map[string]uint32{row.GetState(): 1} // they were the job's
				e := &wire.WatchEvent{Status: row}
				if isFinal(row) && failedCount(row) > 0 {
					e.Failed = []*wire.JobStatus{row}
				}
				t.applyUpdate(e)
				view.update(t, e)
			}
			if len(t.jobs) > 0 && t.openCount() == 0 {
				return nil
			}
		}
	})
}
