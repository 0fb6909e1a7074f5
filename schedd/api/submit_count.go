package api

import (
	"context"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/metrics"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
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
