package ca

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/daemon"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// Bounds on one connection from the network. Requests of anonymous clients fit into one
// or two small packets, and are answered at once.
const (
	maxBody         = 16 << 10
	maxHeaders      = 4 << 10
	maxCalls        = 4
	maxAge          = 20 * time.Second
	maxIdle         = 10 * time.Second
	shutdownTimeout = 5 * time.Second
)

// Run serves as the authority of the pool until ctx ends.
func Run(ctx context.Context, node *config.Node) error {
	log := daemon.Logger("authority")
	if node.Authority == nil {
		return fmt.Errorf("authority of %s: %w: the node file has no authority block", node.Name, roost.BadConfig)
	}
	store, err := openStore(node.Authority.Dir, node.Name)
	if err != nil {
		return err
	}
	defer store.close()
	s := &authorityService{store: store, node: node, log: log}
	if err := s.expireRecords(time.Now()); err != nil {
		return err
	}
	admin, err := rpc.Listen("unix:"+node.AuthoritySocket(), 0o600)
	if err != nil {
		return fmt.Errorf("authority: %w", err)
	}
	var doors []net.Listener
	for _, addr := range node.Authority.Listen {
		l, err := rpc.Listen(addr, 0o600)
		if err != nil {
			closeAll(append(doors, admin))
			return fmt.Errorf("authority: %w", err)
		}
		doors = append(doors, l)
	}
	log.Info("serving", "addresses", node.Authority.Listen, "pool", node.Pool)
	return s.serve(ctx, admin, doors, daemon.ReportReady)
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		l.Close()
	}
}

// serve serves the administrator's socket and network listeners until ctx ends or one of
// them fails. It closes all of them. Connections from the network have a server of their
// own, with other bounds.
func (s *authorityService) serve(ctx context.Context, admin net.Listener, doors []net.Listener, ready func()) error {
	within := rpc.NewServer(nil, peer.MethodAccess(), grpc.WaitForHandlers(true))
	without := s.newJoinServer()
	wire.RegisterAuthorityServer(within, s)
	wire.RegisterAuthorityServer(without, s)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	broken := make(chan error, 1+len(doors))
	running.Go(func() { broken <- within.Serve(admin) })
	dropped := s.logLimited("closed the oldest of too many connections without a certificate")
	for _, l := range doors {
		running.Go(func() {
			broken <- without.Serve(newLimitedListener(l, func(from netip.Addr) { dropped(from.String(), "") }))
		})
	}
	running.Go(func() { s.runExpiry(ctx) })
	ready()
	var err error
	select {
	case <-ctx.Done():
	case err = <-broken:
	}
	cancel()
	within.Stop()
	without.Stop()
	running.Wait()
	return err
}

func (s *authorityService) newJoinServer() *rpc.Server {
	refused := s.logLimited("refused a connection")
	door := newTLSServer(s.store, func(from net.Addr, err error) { refused(from.String(), err.Error()) })
	return rpc.NewServer(nil, peer.MethodAccess(), grpc.WaitForHandlers(true),
		grpc.Creds(door), grpc.MaxRecvMsgSize(maxBody), grpc.MaxHeaderListSize(maxHeaders),
		grpc.MaxConcurrentStreams(maxCalls), grpc.ConnectionTimeout(handshakeTimeout),
		grpc.ReadBufferSize(4<<10), grpc.WriteBufferSize(4<<10),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: maxIdle, MaxConnectionAge: maxAge,
			MaxConnectionAgeGrace: shutdownTimeout, Time: maxIdle, Timeout: shutdownTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: maxIdle}))
}

// logLimited logs what anonymous clients can cause at will. It logs at most ten records
// in ten seconds, and then how many were left out.
func (s *authorityService) logLimited(what string) func(from, why string) {
	var mu sync.Mutex
	var began time.Time
	logged, left := 0, 0
	return func(from, why string) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); now.Sub(began) > 10*time.Second {
			began, logged = now, 0
		}
		if logged++; logged > 10 {
			left++
			return
		}
		more := []any{slog.String("from", from)}
		if why != "" {
			more = append(more, slog.String("why", clip200(why)))
		}
		if left > 0 {
			more = append(more, slog.Int("and_more", left))
		}
		left = 0
		s.log.Warn(what, more...)
	}
}

func clip200(text string) string { return text[:min(len(text), 200)] }

// expireRecords removes records that are no longer needed and signs the list of revoked
// certificates.
func (s *authorityService) expireRecords(now time.Time) error {
	return errors.Join(s.store.dropExpired(now), s.renewRevocationList())
}

func (s *authorityService) runExpiry(ctx context.Context) {
	tick := time.NewTicker(revocationListRenewAfter)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := s.expireRecords(time.Now()); err != nil {
				s.log.Error("store", "err", err)
			}
		}
	}
}
