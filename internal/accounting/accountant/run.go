package accountant

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/daemon"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/metrics"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// OpenFunc opens the store of an accountant. A nil database address means files in the
// directory.
type OpenFunc func(ctx context.Context, settings *config.AccountantSettings) (Store, error)

// niceness is the nice value of an accountant. What it stores was recorded by the schedds
// before: nobody waits for it, and it takes the CPU time of a busy machine last.
const niceness = 10

// Run runs the accountant of a node until ctx ends. A nil identity speaks over unix
// sockets only.
func Run(ctx context.Context, node *config.Node, id *rpc.Identity, open OpenFunc) error {
	log := daemon.Logger("accountant")
	own := node.Accountant
	if own == nil {
		return fmt.Errorf("node %s: %w: the node file has no accountant block", node.Name, roost.BadConfig)
	}
	if err := daemon.SetNiceness(niceness); err != nil {
		log.Debug("normal CPU priority", "err", err)
	}
	if err := os.MkdirAll(own.Dir, 0o700); err != nil {
		return fmt.Errorf("directory %s: %w: %w", own.Dir, roost.NoOutput, err)
	}
	store, err := open(ctx, own)
	if err != nil {
		return err
	}
	audit, err := openAudit(own.Dir)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	defer audit.file.Close()
	listeners, err := listen(own.Listen)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	exporter, err := metrics.Open(node, "accountant", "", id, log)
	if err != nil {
		for _, l := range listeners {
			l.Close()
		}
		return errors.Join(err, store.Close())
	}
	a := &accountant{node: node, identity: id, store: store, log: log, audit: audit, exporter: exporter,
		metrics: metrics.NewAccountant(exporter.Registry(), own.Dir)}
	if err := confineFiles(node, log); err != nil {
		for _, l := range listeners {
			l.Close()
		}
		exporter.Close()
		return errors.Join(err, store.Close())
	}
	log.Info("serving", "addresses", own.Listen, "dir", own.Dir, "database", own.Database != "")
	err = a.serve(ctx, listeners)
	return errors.Join(err, store.Close())
}

func listen(addresses []string) (all []net.Listener, err error) {
	for _, addr := range addresses {
		l, err := rpc.Listen(addr, 0o600)
		if err != nil {
			for _, l := range all {
				l.Close()
			}
			return nil, fmt.Errorf("accountant: %w", err)
		}
		all = append(all, l)
	}
	return all, nil
}

// accountant is the daemon.
type accountant struct {
	node     *config.Node
	identity *rpc.Identity
	store    Store
	log      *slog.Logger
	audit    *auditLog
	schedds  scheddSet
	budgets  spentBudgets
	ledger   ledgerReconciler
	live     liveCache
	exporter *metrics.Exporter
	metrics  *metrics.Accountant
}

// serve runs everything until ctx ends, and returns when all of it has stopped.
func (a *accountant) serve(ctx context.Context, listeners []net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := rpc.NewServer(a.identity, peer.MethodAccess(), grpc.WaitForHandlers(true))
	wire.RegisterAccountantServer(server, &reportService{accountant: a})
	var running sync.WaitGroup
	a.schedds = scheddSet{node: a.node, identity: a.identity, store: a.store, log: a.log, budgets: &a.budgets,
		metrics: a.metrics}
	a.ledger = ledgerReconciler{store: a.store, log: a.log, every: a.node.Accountant.ReconcileEvery,
		shares: a.ledgerShares, running: a.schedds.runningAttempts}
	a.live.list = a.schedds.liveAttempts
	machines := machineWatch{node: a.node, identity: a.identity, store: a.store, log: a.log, metrics: a.metrics}
	sums := upkeep{store: a.store, log: a.log, budgets: &a.budgets, metrics: a.metrics}
	running.Go(func() { a.schedds.watch(ctx) })
	running.Go(func() { machines.watch(ctx) })
	running.Go(func() { sums.run(ctx) })
	running.Go(func() { a.ledger.run(ctx) })
	running.Go(func() { a.runMetrics(ctx) })
	running.Go(func() { a.exporter.Run(ctx) })
	broken := make(chan error, len(listeners))
	for _, l := range listeners {
		running.Go(func() { broken <- server.Serve(l) })
	}
	daemon.ReportReady()
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
