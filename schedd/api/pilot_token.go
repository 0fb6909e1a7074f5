package api

import (
	"context"
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// PilotToken has the authority of the pool make a token with which pilots of the caller
// join. They run the caller's tasks from this node, and nobody else's.
func (s *Service) PilotToken(ctx context.Context, req *wire.PilotTokenQuery) (*wire.PilotTokenReply, error) {
	who, err := s.callerOf(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.checkUser(who); err != nil {
		return nil, err
	}
	if s.node.AuthorityAt == "" || s.identity == nil {
		return nil, fmt.Errorf("token: %w: this pool has no authority that lets machines in: roost up is for one "+
			"machine, and roost init begins a pool of several", roost.Conflict)
	}
	conn, err := rpc.Dial(s.node.AuthorityAt, s.identity, peer.Authority)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, cellTimeout)
	defer cancel()
	made, err := wire.NewAuthorityClient(conn).MakePilotToken(ctx,
		&wire.PilotTokenRequest{User: who.User, Life: req.GetLife(), Uses: req.GetUses()})
	if err := rpc.FromStatus(err); err != nil {
		return nil, fmt.Errorf("authority at %s: %w", s.node.AuthorityAt, err)
	}
	s.log.Info("token for pilots", "user", who.User, "uid", who.UID, "pilots", made.GetInfo().GetUses())
	return &wire.PilotTokenReply{Token: made.GetToken(), Address: made.GetAddress(),
		Expires: made.GetInfo().GetExpires(), Owner: made.GetInfo().GetOwner()}, nil
}
