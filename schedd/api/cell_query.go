package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// cellTimeout bounds how long a user waits for a negotiator that does not answer.
const cellTimeout = 3 * time.Second

// Cell passes a question about the cell, or an administrator's command, on to the
// negotiators. The name of the caller goes along; what they may do the negotiators look
// up. The one that this schedd talks to is asked first, then those of the node file; each
// passes it on to whoever leads.
func (s *Service) Cell(ctx context.Context, req *wire.CellRequest) (*wire.CellReply, error) {
	who, err := s.callerOf(ctx)
	if err != nil {
		return nil, err
	}
	req = proto.CloneOf(req)
	req.Who, req.Trusted, req.Passed = who.User+"@"+s.node.Name, isDaemonUser(ctx), false
	addresses, err := s.NegotiatorAddresses(ctx)
	if err != nil {
		return nil, err
	}
	err = fmt.Errorf("negotiator: %w: the node file names none", roost.Unavailable)
	for _, address := range addresses {
		var reply *wire.CellReply
		if reply, err = forwardCellQuery(ctx, s.identity, address, req); err == nil ||
			!errors.Is(err, roost.Unavailable) {
			return reply, err
		}
	}
	return nil, err
}

// NegotiatorAddresses returns the addresses of all negotiators, the one first that this
// schedd talks to.
func (s *Service) NegotiatorAddresses(ctx context.Context) (addresses []string, err error) {
	err = s.loop.CallLoop(ctx, func(time.Time) {
		if address := s.leader.LeaderAddress(); address != "" {
			addresses = append(addresses, address)
		}
	})
	for _, address := range s.node.Negotiators {
		if !slices.Contains(addresses, address) {
			addresses = append(addresses, address)
		}
	}
	return addresses, err
}

func forwardCellQuery(ctx context.Context, id *rpc.Identity, address string,
	req *wire.CellRequest) (*wire.CellReply, error) {
	conn, err := rpc.Dial(address, id, peer.Negotiator)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, cellTimeout)
	defer cancel()
	reply, err := wire.NewNegotiatorClient(conn).Cell(ctx, req)
	switch err := rpc.FromStatus(err); {
	case err == nil:
		return reply, nil
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("negotiator at %s: %w: it does not answer; the wish may still be granted, see before "+
			"asking again", address, roost.Unavailable)
	default:
		return nil, err
	}
}
