package replica

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
)

// registerMachine is a state machine with the last entry, their number, and a hash over
// all in order.
type registerMachine struct {
	mu sync.Mutex
	registerState
}

type registerState struct {
	Value  string
	Count  int
	Index  uint64
	Digest [32]byte
}

func (m *registerMachine) Apply(index uint64, entry []byte) any {
	m.mu.Lock()
	defer m.mu.Unlock()
	if index <= m.Index {
		panic(fmt.Sprintf("entry %d after %d", index, m.Index))
	}
	m.Value, m.Count, m.Index = string(entry), m.Count+1, index
	m.Digest = sha256.Sum256(append(m.Digest[:], entry...))
	return m.Count
}

func (m *registerMachine) Snapshot() (func(io.Writer) error, error) {
	now := m.currentState()
	return func(w io.Writer) error { return gob.NewEncoder(w).Encode(now) }, nil
}

func (m *registerMachine) Restore(r io.Reader) error {
	var s registerState
	err := gob.NewDecoder(r).Decode(&s)
	m.mu.Lock()
	m.registerState = s
	m.mu.Unlock()
	return err
}

func (m *registerMachine) currentState() registerState {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.registerState
}

// testCell is several replicas in one process, in a bubble of synctest. Their clocks are
// fake, and their network can be cut.
type testCell struct {
	t         *testing.T
	dir       string
	network   *memoryNetwork
	addresses []string // the replicas' configured peers
	log       *slog.Logger

	mu    sync.Mutex
	nodes map[string]*testNode // by address
}

type testNode struct {
	*Replica
	state  *registerMachine
	server *grpc.Server
	stop   context.CancelFunc
	done   chan error

	mu   sync.Mutex
	lead LeadershipChange
}

// runCellTest runs a test with a cell of n replicas, none of which is started.
func runCellTest(t *testing.T, n int, play func(*testing.T, *testCell)) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, n)
		play(t, c)
		c.stopAll()
	})
}

func newCell(t *testing.T, n int) *testCell {
	c := &testCell{t: t, dir: t.TempDir(), network: newMemoryNetwork(), nodes: map[string]*testNode{},
		log: slog.New(slog.DiscardHandler)}
	if os.Getenv("ROOST_DEBUG") != "" {
		c.log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	for i := range n {
		c.addresses = append(c.addresses, fmt.Sprintf("n%d:1", i+1))
	}
	return c
}

func (c *testCell) replicaDir(addr string) string { return filepath.Join(c.dir, addr[:2]) }

func (c *testCell) replicaConfig(addr string) Config {
	return Config{Dir: c.replicaDir(addr), Name: addr[:2], Address: addr, Peers: c.addresses,
		Log: c.log.With("at", addr)}
}

// nodeAt returns the running replica at addr, nil for none.
func (c *testCell) nodeAt(addr string) *testNode {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodes[addr]
}

func (c *testCell) setNode(addr string, n *testNode) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if delete(c.nodes, addr); n != nil {
		c.nodes[addr] = n
	}
}

// runningNodes returns the running replicas, in the order of addresses.
func (c *testCell) runningNodes() []*testNode {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*testNode
	for _, a := range slices.Sorted(maps.Keys(c.nodes)) {
		all = append(all, c.nodes[a])
	}
	return all
}

func (c *testCell) runningAddresses() int { return len(c.runningNodes()) }

func (c *testCell) startReplica(addr string) *testNode { return c.startWith(c.replicaConfig(addr)) }

func (c *testCell) startWith(cfg Config) *testNode {
	c.t.Helper()
	n := &testNode{state: &registerMachine{}, done: make(chan error, 1),
		server: grpc.NewServer(grpc.WaitForHandlers(true))}
	var err error
	if n.Replica, err = Open(cfg, n.state); err != nil {
		c.t.Fatal(err)
	}
	n.dial = c.network.dialerFor(cfg.Address)
	n.Register(n.server)
	go n.server.Serve(c.network.listenAt(cfg.Address))
	ctx, cancel := context.WithCancel(context.Background())
	n.stop = cancel
	go func() {
		for {
			select {
			case l := <-n.Leadership():
				n.mu.Lock()
				n.lead = l
				n.mu.Unlock()
			case <-ctx.Done():
				return
			}
		}
	}()
	go func() { n.done <- n.Run(ctx) }()
	c.setNode(cfg.Address, n)
	c.waitUntil("it runs", func() bool { return n.raft.Load() != nil })
	return n
}

func (c *testCell) startAll() {
	for _, a := range c.addresses {
		c.startReplica(a)
	}
}

// errKilled is the error that ends a killed replica. As with a disk that fails, the
// others get no message.
var errKilled = errors.New("killed")

// killReplica ends a replica at once. Nothing is flushed.
func (c *testCell) killReplica(addr string) {
	if n := c.nodeAt(addr); n != nil {
		n.fail(errKilled)
		c.waitForEnd(addr, n, errKilled)
	}
}

// stopReplica stops a replica in good order. A barrier that has just been sent to raft
// would never be answered, and the bubble not end: so raft takes it in before.
func (c *testCell) stopReplica(addr string) {
	if n := c.nodeAt(addr); n != nil {
		synctest.Wait()
		n.stop()
		c.waitForEnd(addr, n, nil)
	}
}

func (c *testCell) waitForEnd(addr string, n *testNode, want error) {
	c.setNode(addr, nil)
	if err := <-n.done; !errors.Is(err, want) {
		c.t.Errorf("%s: ended with %v, want %v", addr, err, want)
	}
	n.stop()
	n.server.Stop()
}

func (c *testCell) stopAll() {
	c.network.healAll()
	for _, a := range []string{"n1:1", "n2:1", "n3:1", "n4:1", "n5:1"} {
		c.stopReplica(a)
	}
}

// passTime lets time pass.
func (c *testCell) passTime(d time.Duration) { time.Sleep(d) }

func (c *testCell) wipeDisk(addr string) {
	if err := os.RemoveAll(c.replicaDir(addr)); err != nil {
		c.t.Fatal(err)
	}
}

// waitUntil waits for a condition. The clock is fake: an hour of waiting costs nothing,
// and a condition that never holds fails the test.
func (c *testCell) waitUntil(what string, is func() bool) {
	c.t.Helper()
	for range 12_000 {
		if is() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	for _, n := range c.runningNodes() {
		c.t.Logf("%s: %+v", n.config.Address, n.Status())
	}
	c.t.Fatalf("%s: not within a minute", what)
}

func (n *testNode) isLeader() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lead.IsLeader
}

// waitForLeader waits for a leader among some addresses, or all, whose leadership has
// just been confirmed.
func (c *testCell) waitForLeader(among ...string) (found *testNode) {
	c.t.Helper()
	if len(among) == 0 {
		among = []string{"n1:1", "n2:1", "n3:1", "n4:1", "n5:1"}
	}
	c.waitUntil("a leader", func() bool {
		for _, a := range among {
			if n := c.nodeAt(a); n != nil && n.isLeader() && n.Verify(context.Background()) == nil {
				found = n
				return true
			}
		}
		return false
	})
	return found
}

// commitEntry commits an entry on a replica and returns the result.
func (n *testNode) commitEntry(entry string) (any, error) {
	type outcome struct {
		result any
		err    error
	}
	done := make(chan outcome, 2)
	n.Propose([]byte(entry), func(result any, err error) { done <- outcome{result, err} })
	o := <-done
	return o.result, o.err
}

// commitEntries commits entries on the leader, and fails the test if that fails.
func (c *testCell) commitEntries(n *testNode, entries ...string) {
	c.t.Helper()
	for _, e := range entries {
		if _, err := n.commitEntry(e); err != nil {
			c.t.Fatalf("%s: %v", e, err)
		}
	}
}

// waitForSameState waits until all running replicas have the same count entries.
func (c *testCell) waitForSameState(count int) {
	c.t.Helper()
	c.waitUntil(fmt.Sprintf("%d entries everywhere", count), func() bool {
		var first *registerState
		for _, n := range c.runningNodes() {
			s := n.state.currentState()
			if first == nil {
				first = &s
			}
			if s.Count != count || !bytes.Equal(s.Digest[:], first.Digest[:]) {
				return false
			}
		}
		return true
	})
}

// pendingCount returns the number of unresolved proposals.
func (p *pendingProposals) pendingCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.proposed
}
