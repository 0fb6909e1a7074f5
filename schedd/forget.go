package schedd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// Who removes a job that has ended, and says that he knows, wants nothing to be left of it: it leaves the history, and its spooled output goes with it.

// forgetPatience is how long a removal waits for a job that has just ended to leave the queue.
const forgetPatience = 10 * time.Second

// endedJob is one that was to be removed, and what was answered so far: that it has ended.
type endedJob struct {
	queue.Target
	result *wire.ActReply_Result
}

// askedToForget reports whether an answer is that a whole job has ended which was named to be removed also then.
func askedToForget(req *wire.ActRequest, t target, result *wire.ActReply_Result) bool {
	return req.GetEnded() && req.GetVerb() == wire.ActRequest_REMOVE && !t.some && t.err == nil && len(t.Ranges) == 0 && result.GetError() != "" && roost.Kind(result.GetKind()) == roost.Finished
}

// forgetJobs removes jobs from the history, and puts what came of it in the place of what was answered.
func (s *Schedd) forgetJobs(ctx context.Context, who queue.Submitter, jobs []endedJob) {
	ctx, cancel := context.WithTimeout(ctx, forgetPatience)
	defer cancel()
	for _, j := range jobs {
		err := s.forgetJob(ctx, who, j.Target)
		if err != nil {
			j.result.Error, j.result.Kind = err.Error(), uint32(rpc.KindOf(err))
			continue
		}
		j.result.Id, j.result.Error, j.result.Kind = j.Target.String(), "", 0
	}
}

// forgetJob removes one, as soon as it has left the queue.
func (s *Schedd) forgetJob(ctx context.Context, who queue.Submitter, t queue.Target) error {
	if err := s.awaitHistory(ctx, t); err != nil {
		return err
	}
	past, _, err := s.history.Job(t.Job.Seq)
	if err != nil {
		return fmt.Errorf("%v: %w: there is no such job here", t, roost.NotFound)
	}
	if st, _ := past.Status(t.Job.Seq); !who.Admin && who.UID != st.UID {
		return fmt.Errorf("%v: %w: it belongs to %s", t, roost.PermissionDenied, st.Owner)
	}
	if err := os.RemoveAll(filepath.Join(s.dir(), "spool", strconv.FormatUint(t.Job.Seq, 10))); err != nil {
		return fmt.Errorf("%v: its output: %w", t, err)
	}
	return s.history.Forget(t.Job.Seq)
}

// awaitHistory waits until a job that has ended is in the queue no more.
func (s *Schedd) awaitHistory(ctx context.Context, t queue.Target) error {
	tick := time.NewTicker(retireAfter / 10)
	defer tick.Stop()
	for {
		queued, saved := false, false
		if err := s.ask(ctx, func(time.Time) {
			_, queued = s.queue.Status(t.Job.Seq)
			saved = queued && s.queue.Saved(t.Job.Seq)
		}); err != nil {
			return err
		}
		switch {
		case saved:
			return fmt.Errorf("%v: %w: it has ended and keeps a checkpoint for a day, with which roost retry has it go on; remove it later", t, roost.Conflict)
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
