package api

import (
	"context"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/peers"
)

// QueryPool lists the jobs of several schedds, the newest first.
func (s *Service) QueryPool(req *wire.PoolQuery, stream grpc.ServerStreamingServer[wire.PoolRow]) error {
	who, err := s.callerOf(stream.Context())
	if err != nil {
		return err
	}
	if sel := req.GetQuery().GetSelection(); sel != nil && req.GetAt() == "" {
		if sel.Selectors, err = resolveJobWords(stream.Context(), s, who, sel.Selectors,
			req.GetQuery().GetHistory()); err != nil {
			return err
		}
	}
	local := func(ctx context.Context, q *wire.QueryRequest, send func(peers.ListRow) error) error {
		return s.runListQuery(ctx, q, who, send)
	}
	return s.peerSchedds.QueryAll(stream.Context(), req, who, local, stream.Send)
}
