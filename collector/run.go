package collector

import (
	"context"
	"fmt"
	"net"
	"sync"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/collector/adstore"
	"github.com/roost-batch/roost/collector/dns"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/daemon"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/metrics"
	"github.com/roost-batch/roost/internal/relay"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// Run serves as the collector of node until ctx ends. A nil identity serves unix sockets
// only.
func Run(ctx context.Context, node *config.Node, id *rpc.Identity) error {
	log := daemon.Logger("collector")
	if node.Collector == nil || len(node.Collector.Listen) == 0 {
		return fmt.Errorf("collector of %s: %w: it has no address to listen on", node.Name, roost.BadConfig)
	}
	exporter, err := metrics.Open(node, "collector", "", id, log)
	if err != nil {
		return fmt.Errorf("collector: %w", err)
	}
	var listeners []net.Listener
	for _, addr := range node.Collector.Listen {
		l, err := rpc.Listen(addr, 0o600)
		if err != nil {
			for _, l := range listeners {
				l.Close()
			}
			exporter.Close()
			return fmt.Errorf("collector: %w", err)
		}
		listeners = append(listeners, l)
	}
	log.Info("serving", "addresses", node.Collector.Listen)
	closeAll := func() {
		for _, l := range listeners {
			l.Close()
		}
		exporter.Close()
	}
	server := rpc.NewServer(id, peer.MethodAccess(), grpc.WaitForHandlers(true))
	s := &grpcService{storeLoop: newStoreLoop(adstore.DefaultLimits(), nameConfig(node)), exporter: exporter}
	s.storeLoop.log, s.storeLoop.relay = log, relay.NewServer(log)
	s.storeLoop.metrics = metrics.NewCollector(exporter.Registry())
	if id != nil {
		s.isRevoked, s.storeLoop.rights = id.IsRevoked, newRightChecker(id)
	}
	if d := node.Collector.DNS; d != nil {
		if s.dns, err = dns.Listen(dns.Config{Zone: s.storeLoop.names, Rate: d.Rate, Log: log,
			Counted: func(outcome int) { s.storeLoop.metrics.Queries.Inc(outcome) }}, d.Listen); err != nil {
			closeAll()
			return fmt.Errorf("collector: %w", err)
		}
		log.Info("serving DNS", "addresses", s.dns.Addresses(), "zone", s.storeLoop.names.Origin())
	}
	return s.serve(ctx, server, listeners, daemon.ReportReady)
}

// serve runs a collector on listeners, which it closes, until ctx ends or one of them
// fails.
func (s *grpcService) serve(ctx context.Context, server *rpc.Server, listeners []net.Listener, ready func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wire.RegisterCollectorServer(server, s)
	wire.RegisterRelayServer(server, s.storeLoop.relay)

	var running sync.WaitGroup
	running.Go(func() { s.storeLoop.run(ctx) })
	running.Go(func() { s.storeLoop.publishMetrics(ctx) })
	running.Go(func() { s.exporter.Run(ctx) })
	broken := make(chan error, len(listeners)+1)
	if s.dns != nil {
		running.Go(func() {
			if err := s.dns.Run(ctx); err != nil {
				broken <- err
			}
		})
	}
	for _, l := range listeners {
		running.Go(func() { broken <- server.Serve(l) })
	}
	ready()
	var err error
	select {
	case <-ctx.Done():
	case err = <-broken:
	}
	cancel()
	server.Stop()
	running.Wait()
	return err
}
