package api

import (
	"context"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/metrics"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/submitfilter"
)

// Submit takes jobs. When it returns, they are on disk.
func (s *Service) Submit(ctx context.Context, req *wire.SubmitRequest) (*wire.SubmitReply, error) {
	reply, err := s.submit(ctx, req)
	s.metrics.Submits.Inc(submitResult(err))
	return reply, err
}

// submitResult returns the result of a submit for the metrics.
func submitResult(err error) int {
	if err == nil {
		return metrics.SubmitAccepted
	}
	switch rpc.KindOf(err) {
	case roost.Invalid, roost.NotFound, roost.Conflict, roost.Finished, roost.Usage:
		return metrics.SubmitInvalid
	case roost.PermissionDenied, roost.Unauthenticated:
		return metrics.SubmitDenied
	case roost.Exhausted:
		return metrics.SubmitFull
	}
	return metrics.SubmitFailed
}

// newSubmitFilter returns the filter that a node file configures. The queue of the cell
// has that of the node that leads it.
func newSubmitFilter(c Config) *submitfilter.Filter {
	if c.Node == nil || c.Node.Schedd == nil {
		return nil
	}
	return submitfilter.New(c.Node.Name, c.Node.Schedd.Filter, c.Scripts, c.Log)
}

// filterSubmission has the site's filter look at the jobs of a submission. One that was
// taken already gets its answer again, whatever the filter would say now.
func filterSubmission(ctx context.Context, s *Service, who queue.CallerIdentity, key string,
	all []queue.SubmitSpec) error {
	if s.filter == nil {
		return nil
	}
	repeated := false
	if err := s.loop.CallLoop(ctx, func(time.Time) {
		repeated = s.queue.HasSubmission(who, key, s.loop.SubmitLimits())
	}); err != nil || repeated {
		return err
	}
	return s.filter.FilterSubmission(ctx, who, all)
}

// filterAlterations has the site's filter look at what jobs would become by an act. It
// returns the results of those that it refuses; then nothing is altered.
func filterAlterations(ctx context.Context, s *Service, req *wire.ActRequest,
	who queue.CallerIdentity) (refused []*wire.ActReply_Result, err error) {
	if v := req.GetVerb(); s.filter == nil || v != wire.ActRequest_ALTER && v != wire.ActRequest_MOVE &&
		(v != wire.ActRequest_UPDATE || req.GetUpdate().GetPlan()) {
		return nil, nil
	}
	type alteredJob struct {
		id             string
		after, changes queue.SubmitSpec
	}
	var jobs []alteredJob
	if err := s.loop.CallLoop(ctx, func(now time.Time) {
		chosen, err := s.selectTargets(req.GetSelection(), who, true)
		if err != nil {
			return // it is reported when the act is done
		}
		for _, t := range chosen {
			if t.err != nil {
				continue
			}
			events, err := s.DecideVerb(req, t.TaskSelector, who, now)
			if err != nil || len(events) == 0 || !changesAd(events[0]) {
				continue
			}
			if after, changes, ok := queue.AlteredSpec(s.queue, events[0]); ok {
				jobs = append(jobs, alteredJob{t.String(), after, changes})
			}
		}
	}); err != nil {
		return nil, err
	}
	for _, j := range jobs {
		if err := s.filter.CheckAlteration(ctx, who, j.id, j.after.Count, j.after.Ad, j.changes.Ad); err != nil {
			refused = append(refused, &wire.ActReply_Result{Id: j.id, Error: err.Error(),
				Kind: uint32(rpc.KindOf(err))})
		}
	}
	return refused, nil
}
