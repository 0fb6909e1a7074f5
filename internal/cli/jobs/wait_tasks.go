package jobs

import (
	"context"
	"io"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// watchTasks follows single tasks until they have ended. The schedd watches whole jobs:
// whenever something happens to theirs, it is asked about the tasks.
func watchTasks(c *frame.Invocation, sel *scheddapi.Selection, view ProgressDisplay) (*Progress, error) {
	t := newJobProgress()
	s, err := c.ConnectSchedd()
	if err != nil {
		return t, err
	}
	return t, c.Retry(frame.WatchTimeout, func(ctx context.Context, alive func()) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := s.Watch(ctx, &scheddapi.WatchRequest{Selection: sel, IntervalMs: 100})
		if err != nil {
			return err
		}
		for {
			if _, err := stream.Recv(); err == io.EOF {
				return nil
			} else if err != nil {
				return frame.DecodeError(err)
			}
			alive()
			rows, err := c.QueryJobs(&scheddapi.QueryRequest{Selection: sel, Tasks: true, History: true})
			if err != nil {
				return err
			}
			for _, row := range rows {
				row.Tasks, row.Counts = 1, map[string]uint32{row.GetState(): 1} // they were the job's
				e := &scheddapi.WatchEvent{Status: row}
				if document.IsFinal(row) && document.FailedCount(row) > 0 {
					e.Failed = []*scheddapi.JobStatus{row}
				}
				t.applyUpdate(e)
				view.update(t, e)
			}
			if len(t.Jobs) > 0 && t.openCount() == 0 {
				return nil
			}
		}
	})
}
