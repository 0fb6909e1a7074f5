package replica

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
)

// DefaultElectionTimeout is for how long a follower goes without a word from the leader
// before it asks for votes; chance adds up to as much again. Raft's own second makes a
// failover of nearly two.
const DefaultElectionTimeout = 250 * time.Millisecond

// StateMachine is what is replicated. Its methods are called one at a time, Apply in the
// order of the log; what Apply does may depend on the entries alone. Entries since the
// last snapshot are applied again after a restart.
type StateMachine interface {
	// Apply takes in a committed entry. What it returns is the result that Propose
	// reports where the entry came from.
	Apply(index uint64, entry []byte) any
	// Snapshot returns what writes the state as it is now. It may be called while later
	// entries are applied.
	Snapshot() (write func(io.Writer) error, err error)
	// Restore replaces the state by one that was written.
	Restore(io.Reader) error
}

// StateDigester is what a StateMachine may be, too: then it is compared where replicas
// stand at the same entry.
type StateDigester interface {
	// Digest returns the index of the last entry that was applied, 0 if it is not known,
	// and what the state then amounts to: two that are the same have the same. It may be
	// called at any time.
	Digest() (index uint64, sum []byte)
}

// Config says which replica this is.
type Config struct {
	Dir     string // what is on disk lies in here, and nothing else may
	Name    string // of the node, for people
	Address string // at which the others reach this replica: "host:port", or "unix:/path"
	// addresses of all replicas that the cell starts with, this one too or not; none: it
	// is alone
	Peers           []string
	ElectionTimeout time.Duration // 0: DefaultElectionTimeout
	Identity        *rpc.Identity // nil: over unix sockets only
	Log             *slog.Logger

	// Dial makes connections to other replicas; nil: rpc.Dial does, with the identity.
	// Tests cut the network with it.
	Dial func(address string) (*grpc.ClientConn, error)
}

// LeadershipChange is a change of who leads.
type LeadershipChange struct {
	IsLeader bool   // this replica does, and has applied all entries of earlier leaders
	Leader   string // address of the leader, "" where none is known
	Term     uint64 // raft's: a replica that leads again after it was deposed leads in a higher one
}

// Replica is one replica of the log.
type Replica struct {
	config      Config
	machine     StateMachine
	log         *slog.Logger
	dial        func(addr string) (*grpc.ClientConn, error)
	streamLayer *streamLayer
	transport   *raft.NetworkTransport

	store             atomic.Pointer[diskStore]
	identity          atomic.Pointer[memberIdentity]
	raft              atomic.Pointer[raft.Raft] // nil until Run has started it
	leadership        chan LeadershipChange
	lastLedTerm       atomic.Uint64 // the last term of which Leadership has said that this replica leads in it
	proposals         pendingProposals
	membershipChanges chan func(context.Context) // changes of membership, one after another
	failure           chan error                 // what ends Run
	running           sync.WaitGroup
}

// Open reads which replica this is, and starts nothing. A directory that is empty gets an
// identity.
func Open(cfg Config, machine StateMachine) (*Replica, error) {
	if cfg.ElectionTimeout <= 0 {
		cfg.ElectionTimeout = DefaultElectionTimeout
	}
	if cfg.Address == "" {
		return nil, fmt.Errorf("replica %s: %w: it has no address at which the others could reach it", cfg.Name,
			roost.BadConfig)
	}
	cfg.Peers = slices.Clone(cfg.Peers)
	if !slices.Contains(cfg.Peers, cfg.Address) {
		cfg.Peers = append(cfg.Peers, cfg.Address)
	}
	slices.Sort(cfg.Peers)
	cfg.Peers = slices.Compact(cfg.Peers)
	id, err := readIdentity(cfg.Dir, cfg.Name)
	if err != nil {
		return nil, fmt.Errorf("replica %s: %w", cfg.Name, diskFullHint(cfg.Dir, err))
	}
	r := &Replica{
		config: cfg, machine: machine, log: cfg.Log, leadership: make(chan LeadershipChange, 1),
		membershipChanges: make(chan func(context.Context), 16), failure: make(chan error, 16),
	}
	if r.dial = cfg.Dial; r.dial == nil {
		r.dial = func(addr string) (*grpc.ClientConn, error) { return rpc.Dial(addr, cfg.Identity, peer.Negotiator) }
	}
	r.identity.Store(&id)
	r.streamLayer = &streamLayer{replica: r, incoming: make(chan net.Conn), closed: make(chan struct{})}
	r.proposals.init()
	return r, nil
}

// Leadership tells who leads. Only the latest word is kept, so a change may be missed;
// the term tells.
func (r *Replica) Leadership() <-chan LeadershipChange { return r.leadership }

// Run takes part until ctx ends or the disk fails, and returns when all that it started
// is gone.
func (r *Replica) Run(ctx context.Context) error {
	store, err := openStore(r.config.Dir, r.log, r.fail)
	if damages := damagesOf(err); len(damages) > 0 && len(r.config.Peers) > 1 {
		if store, err = r.replaceDamagedLog(ctx, damages); ctx.Err() != nil {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("replica %s: %w", r.config.Name, diskFullHint(r.config.Dir, err))
	}
	defer store.close()
	r.store.Store(store)
	if err := r.renewIdentity(store); err != nil {
		return fmt.Errorf("replica %s: %w", r.config.Name, diskFullHint(r.config.Dir, err))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	notify := make(chan bool, 16)
	transport := r.newTransport()
	rf, err := raft.NewRaft(r.raftConfig(notify), raftFSM{r.machine, r.fail}, store, store, store.snapshots, transport)
	if err != nil {
		return errors.Join(fmt.Errorf("replica %s: %w", r.config.Name, err), transport.Close())
	}
	store.setGuarded()
	r.proposals.startWaiting()
	r.transport = transport
	r.raft.Store(rf)
	r.running.Go(func() { r.watchLeadership(ctx, rf, notify) })
	r.running.Go(func() { r.findOrJoinCell(ctx, rf) })
	r.running.Go(func() { r.runMembership(ctx, rf) })
	r.running.Go(r.proposals.resolveAll)
	select {
	case <-ctx.Done():
		err = nil
		r.transferLeadership(rf)
	case err = <-r.failure:
		err = fmt.Errorf("replica %s: %w", r.config.Name, diskFullHint(r.config.Dir, err))
	}
	cancel()
	r.proposals.closeAndWait(2 * r.config.ElectionTimeout)
	rf.Shutdown().Error() // it closes the transport, and that the layer
	r.proposals.stopResolving()
	r.running.Wait()
	r.streamLayer.running.Wait()
	return err
}

// transferLeadership lets another lead before this replica stops, if it does: nobody then
// has to find out by silence.
func (r *Replica) transferLeadership(rf *raft.Raft) {
	if rf.State() != raft.Leader || len(r.members()) < 2 {
		return
	}
	done := make(chan error, 1)
	go func() { done <- rf.LeadershipTransfer().Error() }()
	select {
	case err := <-done:
		r.log.Info("handed the lead over", "err", err)
	case <-time.After(2 * r.config.ElectionTimeout):
	}
}

// fail ends Run with that error. Of several the first counts.
func (r *Replica) fail(err error) {
	select {
	case r.failure <- err:
	default:
	}
}

// raftConfig are raft's.
func (r *Replica) raftConfig(notify chan<- bool) *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(r.identity.Load().ID)
	c.HeartbeatTimeout, c.ElectionTimeout = r.config.ElectionTimeout, r.config.ElectionTimeout
	// deposed before another can be elected, where clocks run alike
	c.LeaderLeaseTimeout = max(r.config.ElectionTimeout*4/5, 5*time.Millisecond)
	c.CommitTimeout = 25 * time.Millisecond
	c.MaxAppendEntries = maxProposed
	c.BatchApplyCh = true
	c.ShutdownOnRemove = false
	c.SnapshotInterval, c.SnapshotThreshold, c.TrailingLogs = 20*time.Second, 8192, 2048
	c.NotifyCh = notify
	c.Logger = newLogger(r.log)
	c.NoLegacyTelemetry = true
	return c
}

// newTransport takes raft's calls over the streams of the layer.
func (r *Replica) newTransport() *raft.NetworkTransport {
	return raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: r.streamLayer, MaxPool: 3, MaxRPCsInFlight: 32, Logger: newLogger(r.log), MsgpackUseNewTimeFormat: true,
		// after this a call that the network has swallowed is made anew
		Timeout: max(2*time.Second, 4*r.config.ElectionTimeout),
	})
}

// runningRaft returns raft, or why there is none.
func (r *Replica) runningRaft() (*raft.Raft, error) {
	if rf := r.raft.Load(); rf != nil {
		return rf, nil
	}
	return nil, fmt.Errorf("replica %s: %w: it is starting", r.config.Name, roost.Unavailable)
}
