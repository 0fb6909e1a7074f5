package api

import (
	"context"
	"time"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/peers"
)

// LocalWaits returns what the tasks of this schedd wait for.
func LocalWaits(ctx context.Context, s *Service) (*wire.WaitSummary, error) {
	out := &wire.WaitSummary{}
	err := s.loop.CallLoop(ctx, func(now time.Time) {
		queued, running := s.loop.TaskLoad()
		out.QueuedTasks, out.RunningTasks = uint64(queued), uint64(running)
		out.Waiting, out.Oldest = s.waits.summary(now, s.queue, s.leader)
		out.StartErrors = s.leader.StartErrors()
	})
	return out, err
}

// addPoolWaits adds to what a schedd says of itself what the tasks of all schedds wait
// for.
func addPoolWaits(h *wire.HealthReply, others *peers.PoolWaits) {
	h.PoolWaits = &wire.WaitSummary{}
	peers.AddWaits(h.PoolWaits, others.WaitSummary)
	peers.AddWaits(h.PoolWaits, &wire.WaitSummary{Waiting: h.GetWaiting(), Oldest: h.GetOldest(),
		QueuedTasks: h.GetQueuedTasks(), RunningTasks: h.GetRunningTasks(), StartErrors: h.GetStartErrors()})
	h.PoolSchedds, h.SilentSchedds = uint32(others.Schedds+1), others.Silent
}
