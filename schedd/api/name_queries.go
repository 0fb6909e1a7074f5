package api

import (
	"context"
	"fmt"
	"io"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// unimplementedSchedd answers the methods that no other embedded type has. The methods of
// types beside it in Service hide those of the embedded one.
type unimplementedSchedd struct{ wire.UnimplementedScheddServer }

// nameQueries passes questions about the names of services on to a collector. So users
// need no more than the schedd's socket.
type nameQueries struct {
	scheddNode     *config.Node
	scheddIdentity *rpc.Identity
}

// Names implements wire.ScheddServer. The collectors are asked in turn until one answers.
// When the connection to it breaks, so does the call, and the caller begins again with a
// full list.
func (n *nameQueries) Names(q *wire.NamesQuery, to grpc.ServerStreamingServer[wire.NamesUpdate]) error {
	err := fmt.Errorf("collector: %w: the node file names none", roost.Unavailable)
	for _, addr := range n.scheddNode.Collectors {
		var sent int
		if sent, err = n.forwardNames(to.Context(), addr, q, to); err == nil || sent > 0 || to.Context().Err() != nil {
			return err
		}
	}
	return err
}

func (n *nameQueries) forwardNames(ctx context.Context, addr string, q *wire.NamesQuery,
	to grpc.ServerStreamingServer[wire.NamesUpdate]) (sent int, err error) {
	conn, err := rpc.Dial(addr, n.scheddIdentity, peer.Collector)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	from, err := wire.NewCollectorClient(conn).Names(ctx, q)
	for err == nil {
		var u *wire.NamesUpdate
		if u, err = from.Recv(); err == nil {
			sent++
			err = to.Send(u)
		}
	}
	if err == io.EOF {
		return sent, nil
	}
	return sent, fmt.Errorf("collector at %s: %w", addr, rpc.FromStatus(err))
}
