package authority

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

	"google.golang.org/grpc/peer"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/auth"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/pki"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// How long a list of revoked certificates holds, and after what time it is signed anew.
const (
	listLife  = 7 * 24 * time.Hour
	listAfter = time.Hour
)

// service answers for the authority.
type service struct {
	wire.UnimplementedAuthorityServer
	store *store
	node  *config.Node
	log   *slog.Logger
	wrong wrong

	mu   sync.Mutex
	list *revocations // the newest
}

// from is where a call comes from: the host for people and the log, and what bounds count by.
func from(ctx context.Context) (host string, origins netip.Addr) {
	p, ok := peer.FromContext(ctx)
	if !ok || p.Addr.Network() == "unix" {
		return "this host", netip.Addr{}
	}
	host, _, err := net.SplitHostPort(p.Addr.String())
	if err != nil {
		host = p.Addr.String()
	}
	return host, rpc.Origin(p.Addr)
}

// Greet implements wire.AuthorityServer.
func (s *service) Greet(context.Context, *wire.GreetRequest) (*wire.GreetReply, error) {
	return &wire.GreetReply{Pool: s.node.Pool, Now: time.Now().UnixNano()}, nil
}

// Join implements wire.AuthorityServer.
func (s *service) Join(ctx context.Context, req *wire.JoinRequest) (*wire.JoinReply, error) {
	host, origin := from(ctx)
	now := time.Now()
	a := asking{secret: req.GetSecret(), part: Part(req.GetPart()), name: req.GetName(), host: req.GetHost(), from: host}
	record, err := s.admit(a, req.GetRequest(), now)
	if err != nil {
		// Who has the right secret is never kept out by what others behind the same address try: the bound is on the refusals.
		if wait := s.wrong.wait(origin, now); wait > 0 {
			return nil, fmt.Errorf("join: %w: too many wrong tokens came from %s: try again in %v", roost.Exhausted, host, wait.Round(time.Second)+time.Second)
		}
		s.wrong.add(origin, now)
		s.log.Warn("refused to let a machine join", "from", host, "name", clip(cmp.Or(a.name, a.host)), "token", tokenID(digest(a.secret)), "why", err)
		return nil, err
	}
	s.log.Info("joined", "name", record.Name, "part", record.Part, "from", host, "token", tokenID(digest(a.secret)), "expires", when(record.Expires))
	return &wire.JoinReply{
		Certificate: record.DER, Pool: s.node.Pool, Name: record.Name, Part: string(record.Part), Seen: host,
		Collectors: s.node.Collectors, Negotiators: s.node.Negotiators, CheckpointServer: s.node.ImageServer, Authority: s.node.AuthorityAt,
	}, nil
}

func (s *service) admit(a asking, request []byte, now time.Time) (*issued, error) {
	if !s.store.knows(a.secret) {
		return nil, errUnknown(s.node.Pool)
	}
	public, err := pki.ParseRequest(request)
	if err != nil {
		return nil, err
	}
	a.public = public
	record, replaced, err := s.store.join(a, now)
	if err == nil && replaced {
		err = s.renewList()
	}
	return record, err
}

// clip bounds what a stranger can put into the log.
func clip(name string) string { return name[:min(len(name), 64)] }

// caller is the node that calls.
func caller(ctx context.Context) (member, error) {
	p, ok := auth.FromContext(ctx)
	serial, valid := new(big.Int).SetString(p.Serial, 16)
	if !ok || p.Local || !valid {
		return member{}, fmt.Errorf("certificate: %w: only a node can ask for this, with its certificate", roost.PermissionDenied)
	}
	host, _ := from(ctx)
	return member{name: p.Name, roles: p.Certified, serial: serial, from: host}, nil
}

// Renew implements wire.AuthorityServer.
func (s *service) Renew(ctx context.Context, req *wire.RenewRequest) (*wire.RenewReply, error) {
	m, err := caller(ctx)
	if err != nil {
		return nil, err
	}
	var public ed25519.PublicKey
	var record *issued
	if public, err = pki.ParseRequest(req.GetRequest()); err == nil {
		record, err = s.store.renew(m, public, time.Now())
	}
	if err != nil {
		s.log.Warn("refused to renew a certificate", "name", m.name, "from", m.from, "why", err)
		return nil, err
	}
	s.log.Info("renewed", "name", m.name, "from", m.from, "expires", when(record.Expires))
	return &wire.RenewReply{Certificate: record.DER}, nil
}

// Leave implements wire.AuthorityServer.
func (s *service) Leave(ctx context.Context, _ *wire.LeaveRequest) (*wire.LeaveReply, error) {
	m, err := caller(ctx)
	if err != nil {
		return nil, err
	}
	_, err = s.store.putOut(m.name, "it left", time.Now())
	if err != nil && !errors.Is(err, roost.NotFound) { // nothing is known of its certificate, which nobody will use
		return nil, err
	}
	s.log.Info("left", "name", m.name, "from", m.from)
	return &wire.LeaveReply{}, s.renewList()
}

// Revoked implements wire.AuthorityServer.
func (s *service) Revoked(_ context.Context, req *wire.RevokedRequest) (*wire.RevokedReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.list.number == req.GetNumber() {
		return &wire.RevokedReply{}, nil
	}
	return &wire.RevokedReply{List: s.list.der}, nil
}

// renewList signs the list anew. What is said to be revoked is refused from then on.
func (s *service) renewList() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	list, err := s.store.list(time.Now())
	if err != nil {
		return err
	}
	s.list = list
	return nil
}
