package ca

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/netip"
	"sync"
	"time"

	grpcpeer "google.golang.org/grpc/peer"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/identity/pki"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// How long a list of revoked certificates is valid, and after what time it is signed
// again.
const (
	revocationListLife       = 7 * 24 * time.Hour
	revocationListRenewAfter = time.Hour
)

// authorityService implements the authority's gRPC service.
type authorityService struct {
	wire.UnimplementedAuthorityServer
	store       *certStore
	node        *config.Node
	log         *slog.Logger
	failedJoins failedJoins

	mu   sync.Mutex
	list *revocationList // the newest
}

// callOrigin returns the origin of a call: the host, for messages, and the address by
// which bounds count.
func callOrigin(ctx context.Context) (host string, origins netip.Addr) {
	p, ok := grpcpeer.FromContext(ctx)
	if !ok || p.Addr.Network() == "unix" {
		return "this host", netip.Addr{}
	}
	host, _, err := net.SplitHostPort(p.Addr.String())
	if err != nil {
		host = p.Addr.String()
	}
	return host, rpc.LimitKey(p.Addr)
}

// Greet implements wire.AuthorityServer.
func (s *authorityService) Greet(context.Context, *wire.GreetRequest) (*wire.GreetReply, error) {
	return &wire.GreetReply{Pool: s.node.Pool, Now: time.Now().UnixNano()}, nil
}

// Join implements wire.AuthorityServer.
func (s *authorityService) Join(ctx context.Context, req *wire.JoinRequest) (*wire.JoinReply, error) {
	host, origin := callOrigin(ctx)
	now := time.Now()
	a := joinRequest{secret: req.GetSecret(), part: NodePart(req.GetPart()), name: req.GetName(), host: req.GetHost(),
		fromHost: host, life: time.Duration(req.GetLife())}
	record, err := s.limitJoins(a, req.GetRequest(), now)
	if err != nil {
		// A client with the right secret is never refused because of other clients at the
		// same address: only refusals are bounded.
		if wait := s.failedJoins.waitTime(origin, now); wait > 0 {
			return nil, fmt.Errorf("join: %w: too many wrong tokens came from %s: try again in %v", roost.Exhausted,
				host, wait.Round(time.Second)+time.Second)
		}
		s.failedJoins.recordFailure(origin, now)
		s.log.Warn("refused to let a machine join", "from", host, "name", clip(cmp.Or(a.name, a.host)), "token",
			tokenID(digest(a.secret)), "why", err)
		return nil, err
	}
	s.log.Info("joined", "name", record.Name, "part", record.Part, "from", host, "token", tokenID(digest(a.secret)),
		"expires", formatTime(record.Expires))
	return &wire.JoinReply{
		Certificate: record.DER, Pool: s.node.Pool, Name: record.Name, Part: string(record.Part), Seen: host,
		Collectors: s.node.Collectors, Negotiators: s.node.Negotiators, CheckpointServer: s.node.ImageServer,
		Authority: s.node.AuthorityAt, Accountant: s.node.AccountantAt, Owner: record.Owner,
	}, nil
}

func (s *authorityService) limitJoins(a joinRequest, request []byte, now time.Time) (*certRecord, error) {
	if !s.store.hasToken(a.secret) {
		return nil, unknownTokenError(s.node.Pool)
	}
	public, err := pki.ParseRequest(request)
	if err != nil {
		return nil, err
	}
	a.publicKey = public
	record, replaced, err := s.store.redeemToken(a, now)
	if err == nil && replaced {
		err = s.renewRevocationList()
	}
	return record, err
}

// clip bounds the text that an anonymous client can put into the log.
func clip(name string) string { return name[:min(len(name), 64)] }

// callingNode returns the node that calls.
func callingNode(ctx context.Context) (nodeMember, error) {
	p, ok := peer.FromContext(ctx)
	serial, valid := new(big.Int).SetString(p.Serial, 16)
	if !ok || p.Local || !valid {
		return nodeMember{}, fmt.Errorf("certificate: %w: only a node can ask for this, with its certificate",
			roost.PermissionDenied)
	}
	host, _ := callOrigin(ctx)
	return nodeMember{name: p.Name, roles: p.Certified, serial: serial, from: host}, nil
}

// Renew implements wire.AuthorityServer.
func (s *authorityService) Renew(ctx context.Context, req *wire.RenewRequest) (*wire.RenewReply, error) {
	m, err := callingNode(ctx)
	if err != nil {
		return nil, err
	}
	var public ed25519.PublicKey
	var record *certRecord
	if public, err = pki.ParseRequest(req.GetRequest()); err == nil {
		record, err = s.store.renewCert(m, public, time.Now())
	}
	if err != nil {
		s.log.Warn("refused to renew a certificate", "name", m.name, "from", m.from, "why", err)
		return nil, err
	}
	s.log.Info("renewed", "name", m.name, "from", m.from, "expires", formatTime(record.Expires))
	return &wire.RenewReply{Certificate: record.DER}, nil
}

// Leave implements wire.AuthorityServer.
func (s *authorityService) Leave(ctx context.Context, _ *wire.LeaveRequest) (*wire.LeaveReply, error) {
	m, err := callingNode(ctx)
	if err != nil {
		return nil, err
	}
	_, err = s.store.revokeNode(m.name, "it left", time.Now())
	if err != nil && !errors.Is(err, roost.NotFound) { // without a record of its certificate there is nothing to revoke
		return nil, err
	}
	s.log.Info("left", "name", m.name, "from", m.from)
	return &wire.LeaveReply{}, s.renewRevocationList()
}

// Revoked implements wire.AuthorityServer.
func (s *authorityService) Revoked(_ context.Context, req *wire.RevokedRequest) (*wire.RevokedReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.list.number == req.GetNumber() {
		return &wire.RevokedReply{}, nil
	}
	return &wire.RevokedReply{List: s.list.der}, nil
}

// renewRevocationList signs the list again. The certificates on it are refused from then
// on.
func (s *authorityService) renewRevocationList() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	list, err := s.store.signRevocationList(time.Now())
	if err != nil {
		return err
	}
	s.list = list
	return nil
}
