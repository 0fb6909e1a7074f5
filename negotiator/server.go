package negotiator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/adclient"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/daemon"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/metrics"
	"github.com/roost-batch/roost/internal/release"
	"github.com/roost-batch/roost/internal/replica"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/sealing"
)

// defaultPeriod is the longest time between two cycles if the node file does not set it.
const defaultPeriod = 5 * time.Second

// replicatedServer is a negotiator: the loop, the replicated log below it, and its
// services.
type replicatedServer struct {
	*decisionLoop
	replica  *replica.Replica
	config   *config.Node
	identity *rpc.Identity
	dial     func(address string) (*grpc.ClientConn, error) // connects to another negotiator
	exporter *metrics.Exporter
	keys     *sealing.KeyStore
}

// Run serves as the negotiator of node until ctx ends. The other nodes that its file
// names have the other replicas. A nil identity serves unix sockets only. Its persistent
// state is in the directory negotiator of the node's.
func Run(ctx context.Context, node *config.Node, id *rpc.Identity) error {
	log := daemon.Logger("negotiator")
	if node.Negotiator == nil || len(node.Negotiator.Listen) == 0 {
		return fmt.Errorf("negotiator of %s: %w: it has no address to listen on", node.Name, roost.BadConfig)
	}
	s, err := openServer(node, id, nil, log)
	if err != nil {
		return fmt.Errorf("negotiator: %w", err)
	}
	if err := s.openExporter(); err != nil {
		return err
	}
	var listeners []net.Listener
	for _, addr := range node.Negotiator.Listen {
		listener, err := rpc.Listen(addr, 0o600)
		if err != nil {
			for _, l := range listeners {
				l.Close()
			}
			s.exporter.Close()
			return fmt.Errorf("negotiator: %w", err)
		}
		listeners = append(listeners, listener)
	}
	if n := len(node.Negotiators); n > 0 && n%2 == 0 {
		log.Warn("an even number of negotiators tolerates no more failures than one fewer", "negotiators", n)
	}
	log.Info("serving", "addresses", node.Negotiator.Listen, "negotiators", len(node.Negotiators))
	return s.serve(ctx, rpc.NewServer(id, peer.MethodAccess(), grpc.WaitForHandlers(true), rpc.WithSessionSizes()),
		listeners, daemon.ReportReady)
}

// openServer reads the state of this replica, and starts nothing. dial connects to the
// others; nil means the default.
func openServer(node *config.Node, id *rpc.Identity, dial func(address string) (*grpc.ClientConn, error),
	log *slog.Logger) (*replicatedServer, error) {
	dir := filepath.Join(node.Dir, "negotiator")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	leadership := newLeadership()
	record := newLedgerStore(func(epoch uint64) {
		leadership.setState(func(p *leadershipState) { p.epoch = max(p.epoch, epoch) })
	})
	settings := replicaConfig(node, log)
	settings.Identity, settings.Dial = id, dial
	r, err := replica.Open(settings, record)
	if err != nil {
		return nil, err
	}
	if dial == nil {
		dial = func(address string) (*grpc.ClientConn, error) { return rpc.Dial(address, id, peer.Negotiator) }
	}
	keys, err := sealing.Open(filepath.Join(dir, secretKeysFile))
	if err != nil {
		return nil, err
	}
	l := newLoop(node.Name, settings.Address, record, leadership, cmp.Or(node.Negotiator.Cycle, defaultPeriod), log)
	l.legacyAccounts, l.onLegacyTaken = readLegacyAccounts(dir, log), func() { setAsideLegacyFiles(dir, log) }
	return &replicatedServer{decisionLoop: l, replica: r, config: node, identity: id, dial: dial, keys: keys}, nil
}

// secretKeysFile is the file with the keys of secrets, in the negotiator's directory.
const secretKeysFile = "secret-keys"

// secretStore returns what serves the secrets of users.
func (s *replicatedServer) secretStore() *secretStore {
	others := slices.DeleteFunc(slices.Clone(s.config.Negotiators), func(a string) bool { return a == s.address })
	return &secretStore{ledgerAdmin: s.decisionLoop, keys: s.keys, others: others, dial: s.dial,
		verifyLeader: s.replica.Verify, log: s.log, reads: s.metrics.SecretReads, usesKey: func(id string) (used bool) {
			s.ledgerStore.view(func(l *ledger.Ledger) {
				used = slices.ContainsFunc(ledger.Secrets(l), func(o ledger.Secret) bool { return o.Key == id })
			})
			return used
		}}
}

// openExporter opens the address of the metrics, if the node file names one.
func (s *replicatedServer) openExporter() (err error) {
	if s.exporter, err = metrics.Open(s.config, "negotiator", "", s.identity, s.log); err != nil {
		return fmt.Errorf("negotiator: %w", err)
	}
	s.metrics.Negotiator = metrics.NewNegotiator(s.exporter.Registry(), filepath.Join(s.config.Dir, "negotiator"))
	s.metrics.Snapshots.OnStale(s.metrics.wakeLoop)
	return nil
}

// shutdownTimeout is how long a negotiator may take to end. If it waited forever for a
// disk or a library, its master could not restart it.
const shutdownTimeout = 5 * time.Second

// serve runs the negotiator on the listeners, which it closes, until ctx ends or
// something fails.
func (s *replicatedServer) serve(ctx context.Context, to *rpc.Server, listeners []net.Listener, ready func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	admin := &adminService{ledgerAdmin: s.decisionLoop, nodeName: s.node, leadership: s.leadership, dial: s.dial,
		secrets: s.secretStore()}
	wire.RegisterNegotiatorServer(to, &grpcService{loop: s.decisionLoop, admin: admin, name: s.node, log: s.log,
		verifyLeader: s.replica.Verify})
	s.replica.Register(to)

	broken := make(chan error, len(listeners)+2)
	var running sync.WaitGroup
	running.Go(func() { broken <- s.replica.Run(ctx) })
	running.Go(func() { broken <- s.run(ctx, s.replica) })
	running.Go(func() { s.watchMachines(ctx) })
	running.Go(func() { s.advertise(ctx) })
	running.Go(func() { s.exporter.Run(ctx) })
	running.Go(func() { s.metrics.surveyReplicas(ctx, s.replica) })
	for _, listener := range listeners {
		running.Go(func() { broken <- to.Serve(listener) })
	}
	ready()
	var err error
	select {
	case <-ctx.Done():
	case err = <-broken:
	}
	cancel()
	done := make(chan struct{})
	go func() {
		to.Stop()
		running.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(shutdownTimeout):
		s.log.Error("some goroutines have not ended; they end with the process", "within", shutdownTimeout)
	}
	for len(broken) > 0 {
		err = errors.Join(err, <-broken)
	}
	return err
}

// watchMachines watches the machines. It parses their ads outside of the loop.
func (s *replicatedServer) watchMachines(ctx context.Context) {
	w := adclient.AdWatcher{
		Collectors: s.config.Collectors, Identity: s.identity, Type: "Machine", Log: s.log,
		Apply: func(changes []adclient.AdChange, synced bool) {
			all := make([]machineUpdate, 0, len(changes))
			for _, c := range changes {
				all = append(all, parseMachineUpdate(time.Now(), c, s.log))
			}
			s.postEvent(ctx, func(now time.Time) { s.onMachinesChanged(now, all, synced) })
		},
	}
	w.Run(ctx)
}

// advertise advertises the negotiator's address, and who leads.
func (s *replicatedServer) advertise(ctx context.Context) {
	client := adclient.New(adclient.ClientConfig{Collectors: s.config.Collectors, Identity: s.identity,
		Type: "Negotiator", Name: s.node, Log: s.log})
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { client.Run(ctx) })
	for {
		p, changed := s.leadership.currentState()
		ad := classad.New()
		ad.SetString(roost.AttrMyType, "Negotiator")
		ad.SetString(roost.AttrName, s.node)
		ad.SetString(roost.AttrMyAddress, s.address)
		release.Describe(ad)
		ad.SetInt("Epoch", int64(p.epoch))
		ad.SetBool("Leads", p.isLeader)
		if p.leader != "" {
			ad.SetString("Leader", p.leader)
		}
		ad.SetInt(roost.AttrDaemonStart, client.Started()/int64(time.Second))
		s.config.DescribeMetrics(ad, "")
		client.Update(ad.String(), nil)
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
