package ca

import (
	"context"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/wire"
)

// requireLocalAdmin checks that a call comes from this host. The access table already
// denies other callers, unless an administrator makes a certificate with the authority's
// role by hand; even with such a certificate no tokens can be made.
func requireLocalAdmin(ctx context.Context) (uid uint32, err error) {
	p, ok := peer.FromContext(ctx)
	if !ok || !p.Local {
		return 0, fmt.Errorf("tokens: %w: only on the authority's own host, as root", roost.PermissionDenied)
	}
	return p.UID, nil
}

// MakeToken implements wire.AuthorityServer.
func (s *authorityService) MakeToken(ctx context.Context, req *wire.MakeTokenRequest) (*wire.MakeTokenReply, error) {
	uid, err := requireLocalAdmin(ctx)
	if err != nil {
		return nil, err
	}
	if NodePart(req.GetPart()) == Pilot {
		return s.makePilotToken(req.GetOwner(), req.GetUses(), time.Duration(req.GetLife()), fmt.Sprintf("uid %d", uid))
	}
	t, record, err := s.store.createToken(NodePart(req.GetPart()), req.GetName(), time.Duration(req.GetLife()),
		time.Now())
	if err != nil {
		return nil, err
	}
	info := record.info(digest(t.Secret[:]))
	s.log.Info("made a token", "token", info.GetId(), "part", info.GetPart(), "name", info.GetName(), "expires",
		formatTime(info.GetExpires()), "uid", uid)
	return &wire.MakeTokenReply{Token: t.String(), Address: s.node.AuthorityAt, Info: info}, nil
}

// RemoveToken implements wire.AuthorityServer.
func (s *authorityService) RemoveToken(ctx context.Context,
	req *wire.RemoveTokenRequest) (*wire.RemoveTokenReply, error) {
	uid, err := requireLocalAdmin(ctx)
	if err != nil {
		return nil, err
	}
	info, err := s.store.removeToken(req.GetId())
	if err != nil {
		return nil, err
	}
	s.log.Info("took a token back", "token", info.GetId(), "uid", uid)
	return &wire.RemoveTokenReply{Removed: info}, nil
}

// Members implements wire.AuthorityServer.
func (s *authorityService) Members(ctx context.Context, _ *wire.MembersRequest) (*wire.MembersReply, error) {
	if _, err := requireLocalAdmin(ctx); err != nil {
		return nil, err
	}
	tokens, err := s.store.listTokens()
	if err != nil {
		return nil, err
	}
	members, err := s.store.listMembers()
	return &wire.MembersReply{Tokens: tokens, Members: members}, err
}

// Revoke implements wire.AuthorityServer.
func (s *authorityService) Revoke(ctx context.Context, req *wire.RevokeRequest) (*wire.RevokeReply, error) {
	uid, err := requireLocalAdmin(ctx)
	if err != nil {
		return nil, err
	}
	reason := req.GetReason()
	if reason == "" {
		reason = "revoked by the administrator"
	}
	if len(reason) > maxReason {
		return nil, fmt.Errorf("reason: %w: it has more than %d letters", roost.Invalid, maxReason)
	}
	n, err := s.store.revokeNode(req.GetName(), reason, time.Now())
	if err != nil {
		return nil, err
	}
	s.log.Info("revoked", "name", req.GetName(), "certificates", n, "reason", reason, "uid", uid)
	return &wire.RevokeReply{Certificates: uint32(n)}, s.renewRevocationList()
}

const maxReason = 1000
