package replica

import (
	"cmp"
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

// DefaultElectionTimeout is how long a follower waits for a silent leader before it
// starts an election. A random time of up to the same length is added. Raft's own default
// of a second makes a failover take almost two.
const DefaultElectionTimeout = 250 * time.Millisecond

// StateMachine is the replicated state machine. Its methods are called one at a time,
// Apply in the order of the log. The effect of Apply must depend on the entries alone.
// Entries since the last snapshot are applied again after a restart.
type StateMachine interface {
	// Apply applies a committed entry. Propose reports its result on the replica that
	// proposed the entry.
	Apply(index uint64, entry []byte) any
	// Snapshot returns a function that writes the state as it is now. It may be called
	// while later entries are applied.
	Snapshot() (write func(io.Writer) error, err error)
	// Restore replaces the state by one that a snapshot wrote.
	Restore(io.Reader) error
}

// StateDigester is an optional interface of a StateMachine. With it the states of
// replicas are compared at the same entry.
type StateDigester interface {
	// Digest returns the index of the last applied entry, 0 if unknown, and a digest of
	// the state at that entry. Equal states have equal digests. It may be called at any
	// time.
	Digest() (index uint64, sum []byte)
}

// Config configures a replica.
type Config struct {
	Dir     string // directory of the replica's files, and of no others
	Name    string // of the node, for display
	Address string // address of this replica for the others: "host:port", or "unix:/path"
	// addresses of all replicas of a new cell, with or without this one; empty: it is
	// alone
	Peers           []string
	ElectionTimeout time.Duration // 0: DefaultElectionTimeout

	Snapshots SnapshotPolicy
	// StoresState says that the state machine has stored the effect of all entries up to
	// the last snapshot by itself. So that snapshot is not restored at the start.
	StoresState bool
	Identity    *rpc.Identity // nil: unix sockets only
	Log         *slog.Logger

	// Dial connects to other replicas; nil: rpc.Dial with the identity. Tests use it to
	// cut the network.
	Dial func(address string) (*grpc.ClientConn, error)
}

// SnapshotPolicy says when a replica takes snapshots. Zero fields have defaults.
type SnapshotPolicy struct {
	Entries  uint64        // that are applied between two snapshots; 8192 by default
	Interval time.Duration // how often that is looked at; 20 s by default
	Trailing uint64        // entries before a snapshot that stay for others; 2048 by default
}

// LeadershipChange is a change of the leader.
type LeadershipChange struct {
	IsLeader bool   // this replica leads, and has applied all entries of earlier leaders
	Leader   string // address of the leader, "" if unknown
	Term     uint64 // raft's term: a replica that leads again after it was deposed has a higher one
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
	lastLedTerm       atomic.Uint64 // the last term for which Leadership has reported that this replica leads
	lostLeader        chan struct{} // has one element while this replica considers an election
	proposals         pendingProposals
	membershipChanges chan func(context.Context) // executed one after another
	failure           chan error                 // an error that ends Run
	running           sync.WaitGroup
}

// Open reads the identity of this replica, and starts nothing. An empty directory gets a
// new identity.
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
		lostLeader: make(chan struct{}, 1),
	}
	if r.dial = cfg.Dial; r.dial == nil {
		r.dial = func(addr string) (*grpc.ClientConn, error) { return rpc.Dial(addr, cfg.Identity, peer.Negotiator) }
	}
	r.identity.Store(&id)
	r.streamLayer = &streamLayer{replica: r, incoming: make(chan net.Conn), closed: make(chan struct{})}
	r.proposals.init()
	return r, nil
}

// Leadership returns a channel of leadership changes. It holds only the latest one, so a
// change may be missed; the term shows that.
func (r *Replica) Leadership() <-chan LeadershipChange { return r.leadership }

// Run runs the replica until ctx ends or the disk fails, and returns when everything that
// it started has ended.
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
	rf.Shutdown().Error() // it closes the transport, which closes the stream layer
	r.proposals.stopResolving()
	r.running.Wait()
	r.streamLayer.running.Wait()
	return err
}

// transferLeadership transfers the leadership before this leader stops, so that the
// others need not wait for an election timeout.
func (r *Replica) transferLeadership(rf *raft.Raft) {
	if rf.State() != raft.Leader || len(r.members()) < 2 {
		return
	}
	done := make(chan error, 1)
	go func() { done <- rf.LeadershipTransfer().Error() }()
	select {
	case err := <-done:
		r.log.Info("passed the leadership on", "err", err)
	case <-time.After(2 * r.config.ElectionTimeout):
	}
}

// Fail ends Run with an error, for a state machine that cannot go on. Only the first
// error counts.
func (r *Replica) Fail(err error) { r.fail(err) }

// fail ends Run with an error. Only the first error counts.
func (r *Replica) fail(err error) {
	select {
	case r.failure <- err:
	default:
	}
}

// raftConfig returns raft's configuration.
func (r *Replica) raftConfig(notify chan<- bool) *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(r.identity.Load().ID)
	c.HeartbeatTimeout, c.ElectionTimeout = r.config.ElectionTimeout, r.config.ElectionTimeout
	// deposed before another can be elected, if clocks run at the same rate
	c.LeaderLeaseTimeout = max(r.config.ElectionTimeout*4/5, 5*time.Millisecond)
	c.CommitTimeout = 25 * time.Millisecond
	c.MaxAppendEntries = maxProposed
	c.BatchApplyCh = true
	c.ShutdownOnRemove = false
	p := r.config.Snapshots
	c.SnapshotInterval = cmp.Or(p.Interval, 20*time.Second)
	c.SnapshotThreshold, c.TrailingLogs = cmp.Or(p.Entries, 8192), cmp.Or(p.Trailing, 2048)
	c.NoSnapshotRestoreOnStart = r.config.StoresState
	c.NotifyCh = notify
	c.Logger = newLogger(r.log)
	c.NoLegacyTelemetry = true
	return c
}

// newTransport returns a transport of raft over the streams of the layer.
func (r *Replica) newTransport() *raft.NetworkTransport {
	return raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: r.streamLayer, MaxPool: 3, MaxRPCsInFlight: 32, Logger: newLogger(r.log), MsgpackUseNewTimeFormat: true,
		// after this time a call without an answer is repeated
		Timeout: max(2*time.Second, 4*r.config.ElectionTimeout),
	})
}

// runningRaft returns raft, or an error if it does not run.
func (r *Replica) runningRaft() (*raft.Raft, error) {
	if rf := r.raft.Load(); rf != nil {
		return rf, nil
	}
	return nil, fmt.Errorf("replica %s: %w: it is starting", r.config.Name, roost.Unavailable)
}
