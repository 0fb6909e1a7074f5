package api

import (
	"context"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// collectorTimeout bounds how long a user waits for a collector that does not answer.
const collectorTimeout = 2 * time.Second

// Ads passes a question about the pool's ads on to a collector. So users need no more
// than the schedd's socket. The collectors are asked in turn until one answers.
func (s *Service) Ads(q *wire.AdQuery, stream grpc.ServerStreamingServer[wire.AdText]) error {
	err := fmt.Errorf("collector: %w: the node file names none", roost.Unavailable)
	for _, addr := range s.node.Collectors {
		var sent int
		if sent, err = s.forwardAdQuery(stream.Context(), addr, q, stream); err == nil || sent > 0 {
			return err
		}
	}
	return err
}

func (s *Service) forwardAdQuery(ctx context.Context, addr string, q *wire.AdQuery,
	to grpc.ServerStreamingServer[wire.AdText]) (sent int, err error) {
	conn, err := rpc.Dial(addr, s.identity, peer.Collector)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, collectorTimeout)
	defer cancel()
	from, err := wire.NewCollectorClient(conn).Query(ctx, q)
	for err == nil {
		var ad *wire.AdText
		if ad, err = from.Recv(); err == nil {
			sent++
			err = to.Send(ad)
		}
	}
	if err == io.EOF {
		return sent, nil
	}
	return sent, fmt.Errorf("collector at %s: %w", addr, rpc.FromStatus(err))
}
