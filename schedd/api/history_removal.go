package api

import (
	"context"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// Who removes a job that has ended, and says that he knows, wants nothing to be left of
// it: it leaves the history, and its spooled output goes with it.

// historyWaitTimeout is how long a removal waits for a job that has just ended to leave
// the queue.
const historyWaitTimeout = 10 * time.Second

// historyPoll is how often it is looked whether it has.
const historyPoll = 200 * time.Millisecond

// endedJob is one that was to be removed, and what was answered so far: that it has
// ended.
type endedJob struct {
	queue.TaskSelector
	result *wire.ActReply_Result
}

// isForgetRequest reports whether an answer is that a whole job has ended which was named
// to be removed also then.
func isForgetRequest(req *wire.ActRequest, t selectionTarget, result *wire.ActReply_Result) bool {
	return req.GetEnded() && req.GetVerb() == wire.ActRequest_REMOVE && !t.isPart && t.err == nil &&
		len(t.Ranges) == 0 && result.GetError() != "" && roost.ErrorKind(result.GetKind()) == roost.Finished
}

// removeHistoryJobs removes jobs from the history, and puts what came of it in the place
// of what was answered.
func (s *Service) removeHistoryJobs(ctx context.Context, who queue.CallerIdentity, jobs []endedJob) {
	ctx, cancel := context.WithTimeout(ctx, historyWaitTimeout)
	defer cancel()
	for _, j := range jobs {
		err := s.removeHistoryJob(ctx, who, j.TaskSelector)
		if err != nil {
			j.result.Error, j.result.Kind = err.Error(), uint32(rpc.KindOf(err))
			continue
		}
		j.result.Id, j.result.Error, j.result.Kind = j.TaskSelector.String(), "", 0
	}
}

// removeHistoryJob removes one, as soon as it has left the queue.
func (s *Service) removeHistoryJob(ctx context.Context, who queue.CallerIdentity, t queue.TaskSelector) error {
	if err := s.waitForHistory(ctx, t); err != nil {
		return err
	}
	past, _, err := s.history.Job(t.Job.Seq)
	if err != nil {
		return fmt.Errorf("%v: %w: there is no such job here", t, roost.NotFound)
	}
	st, _ := past.Status(t.Job.Seq)
	if err := who.CheckOwner(t, st.Owner, st.UID); err != nil {
		return err
	}
	if err := s.transfers.SpoolFiles.RemoveJob(t.Job.Seq); err != nil {
		return fmt.Errorf("%v: its output: %w", t, err)
	}
	return s.removeHistory(t.Job.Seq)
}

// waitForHistory waits until a job that has ended is in the queue no more.
func (s *Service) waitForHistory(ctx context.Context, t queue.TaskSelector) error {
	tick := time.NewTicker(historyPoll)
	defer tick.Stop()
	for {
		queued, saved := false, false
		if err := s.loop.CallLoop(ctx, func(time.Time) {
			_, queued = s.queue.Status(t.Job.Seq)
			saved = queued && s.queue.HasImages(t.Job.Seq)
		}); err != nil {
			return err
		}
		switch {
		case saved:
			return fmt.Errorf("%v: %w: it has ended and keeps a checkpoint for a day, with which roost retry has it "+
				"go on; remove it later", t, roost.Conflict)
		case !queued:
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%v: %w: it has only just ended; remove it later", t, roost.Conflict)
		}
	}
}
