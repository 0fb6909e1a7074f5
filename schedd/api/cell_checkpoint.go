package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// CheckpointCell passes the question for a checkpoint of the cell on to the negotiators,
// until the one that leads answers. All that is in one everybody may read by other
// commands: machines' ads, what jobs ask for, and what administrators have set.
func (s *Service) CheckpointCell(_ *wire.CheckpointCellRequest,
	to grpc.ServerStreamingServer[wire.CheckpointPiece]) error {
	ctx := to.Context()
	who, err := s.callerOf(ctx)
	if err != nil {
		return err
	}
	addresses, err := s.NegotiatorAddresses(ctx)
	if err != nil {
		return err
	}
	req := &wire.CheckpointCellRequest{Who: who.User + "@" + s.node.Name}
	err = fmt.Errorf("negotiator: %w: the node file names none", roost.Unavailable)
	for _, address := range addresses {
		var sent bool
		if sent, err = s.forwardCellCheckpoint(ctx, address, req, to); sent || !errors.Is(err, roost.Unavailable) {
			return err
		}
	}
	return err
}

// forwardCellCheckpoint passes on what one negotiator says, and reports whether anything
// was.
func (s *Service) forwardCellCheckpoint(ctx context.Context, address string, req *wire.CheckpointCellRequest,
	to grpc.ServerStreamingServer[wire.CheckpointPiece]) (sent bool, err error) {
	conn, err := rpc.Dial(address, s.identity, peer.Negotiator)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	late := time.AfterFunc(cellTimeout, cancel) // for the first piece: those that follow come as fast as they are taken
	defer late.Stop()
	from, err := wire.NewNegotiatorClient(conn).CheckpointCell(ctx, req)
	for err == nil {
		var piece *wire.CheckpointPiece
		if piece, err = from.Recv(); err != nil {
			break
		}
		if !sent && !late.Stop() {
			break
		}
		sent = true
		err = to.Send(piece)
	}
	switch {
	case errors.Is(err, io.EOF):
		return true, nil
	case !sent && ctx.Err() != nil && to.Context().Err() == nil:
		return false, fmt.Errorf("negotiator at %s: %w: it does not answer", address, roost.Unavailable)
	}
	return sent, rpc.FromStatus(err)
}
