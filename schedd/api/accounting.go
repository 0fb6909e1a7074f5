package api

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// Accounting passes a question about accounts on to the accountant. The name of the
// caller goes along; what they may read the accountant decides.
func (s *Service) Accounting(req *wire.AccountingQuery, stream grpc.ServerStreamingServer[wire.AccountingPiece]) error {
	ctx := stream.Context()
	who, err := s.callerOf(ctx)
	if err != nil {
		return err
	}
	req = proto.CloneOf(req)
	req.Who, req.Trusted = who.User+"@"+s.node.Name, isDaemonUser(ctx)
	return callAccountant(s, func(accountant wire.AccountantClient) error {
		pieces, err := accountant.Report(ctx, req)
		for err == nil {
			var piece *wire.AccountingPiece
			if piece, err = pieces.Recv(); err == nil {
				err = stream.Send(piece)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	})
}

// ChangeAccounts passes a change of the accounts on to the accountant, likewise.
func (s *Service) ChangeAccounts(ctx context.Context, req *wire.AccountingChange) (result *wire.AccountingResult,
	err error) {
	who, err := s.callerOf(ctx)
	if err != nil {
		return nil, err
	}
	req = proto.CloneOf(req)
	req.Who, req.Trusted = who.User+"@"+s.node.Name, isDaemonUser(ctx)
	err = callAccountant(s, func(accountant wire.AccountantClient) error {
		result, err = accountant.Change(ctx, req)
		return err
	})
	return result, err
}

// callAccountant calls f with the accountant of the pool.
func callAccountant(s *Service, f func(accountant wire.AccountantClient) error) error {
	address := s.node.AccountantAt
	if address == "" && s.accountantAddress != nil {
		address = s.accountantAddress()
	}
	if address == "" {
		return fmt.Errorf("accountant: %w: this schedd knows of none: the node file has no accountant, and none has "+
			"called; see roost-accountant(8)", roost.Unavailable)
	}
	conn, err := rpc.Dial(address, s.identity, peer.Accountant)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err = rpc.FromStatus(f(wire.NewAccountantClient(conn))); errors.Is(err, roost.Unavailable) {
		return fmt.Errorf("accountant at %s: %w", address, err)
	}
	return err
}
