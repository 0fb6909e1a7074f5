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

// register is a state machine: the last entry, how many there were, and a hash over all of them in their order.
type register struct {
	mu sync.Mutex
	registerState
}

type registerState struct {
	Value  string
	Count  int
	Index  uint64
	Digest [32]byte
}

func (m *register) Apply(index uint64, entry []byte) any {
	m.mu.Lock()
	defer m.mu.Unlock()
	if index <= m.Index {
		panic(fmt.Sprintf("entry %d after %d", index, m.Index))
	}
	m.Value, m.Count, m.Index = string(entry), m.Count+1, index
	m.Digest = sha256.Sum256(append(m.Digest[:], entry...))
	return m.Count
}

func (m *register) Snapshot() (func(io.Writer) error, error) {
	now := m.now()
	return func(w io.Writer) error { return gob.NewEncoder(w).Encode(now) }, nil
}

func (m *register) Restore(r io.Reader) error {
	var s registerState
	err := gob.NewDecoder(r).Decode(&s)
	m.mu.Lock()
	m.registerState = s
	m.mu.Unlock()
	return err
}

func (m *register) now() registerState {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.registerState
}

// cell is several replicas in one process, in a bubble of synctest: their clocks are fake, and their network is cut at will.
type cell struct {
	t     *testing.T
	dir   string
	net   *network
	addrs []string // that replicas are told as their peers
	log   *slog.Logger

	mu    sync.Mutex
	nodes map[string]*node // by address
}

type node struct {
	*Replica
	state  *register
	server *grpc.Server
	stop   context.CancelFunc
	done   chan error

	mu   sync.Mutex
	lead Leadership
}

// bubble plays a cell of that many replicas, none of which is started.
func bubble(t *testing.T, n int, play func(*testing.T, *cell)) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, n)
		play(t, c)
		c.stopAll()
	})
}

func newCell(t *testing.T, n int) *cell {
	c := &cell{t: t, dir: t.TempDir(), net: newNetwork(), nodes: map[string]*node{}, log: slog.New(slog.DiscardHandler)}
	if os.Getenv("ROOST_DEBUG") != "" {
		c.log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	for i := range n {
		c.addrs = append(c.addrs, fmt.Sprintf("n%d:1", i+1))
	}
	return c
}

func (c *cell) path(addr string) string { return filepath.Join(c.dir, addr[:2]) }

func (c *cell) config(addr string) Config {
	return Config{Dir: c.path(addr), Name: addr[:2], Address: addr, Peers: c.addrs, Log: c.log.With("at", addr)}
}

// at is the replica that runs at addr, nil for none.
func (c *cell) at(addr string) *node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodes[addr]
}

func (c *cell) set(addr string, n *node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if delete(c.nodes, addr); n != nil {
		c.nodes[addr] = n
	}
}

// all are those that run, in the order of their addresses.
func (c *cell) all() []*node {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*node
	for _, a := range slices.Sorted(maps.Keys(c.nodes)) {
		all = append(all, c.nodes[a])
	}
	return all
}

func (c *cell) running() int { return len(c.all()) }

func (c *cell) start(addr string) *node { return c.startWith(c.config(addr)) }

func (c *cell) startWith(cfg Config) *node {
	c.t.Helper()
	n := &node{state: &register{}, done: make(chan error, 1), server: grpc.NewServer(grpc.WaitForHandlers(true))}
	var err error
	if n.Replica, err = Open(cfg, n.state); err != nil {
		c.t.Fatal(err)
	}
	n.dial = c.net.dialer(cfg.Address)
	n.Register(n.server)
	go n.server.Serve(c.net.listen(cfg.Address))
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
	c.set(cfg.Address, n)
	c.until("it runs", func() bool { return n.raft.Load() != nil })
	return n
}

func (c *cell) startAll() {
	for _, a := range c.addrs {
		c.start(a)
	}
}

// errKilled is how a replica ends that is killed: as with a disk that fails, nothing is said to the others.
var errKilled = errors.New("killed")

// kill ends a replica at once. Nothing is flushed that was not on disk before.
func (c *cell) kill(addr string) {
	if n := c.at(addr); n != nil {
		n.breaks(errKilled)
		c.gone(addr, n, errKilled)
	}
}

// stop ends a replica in good order.
func (c *cell) stop(addr string) {
	if n := c.at(addr); n != nil {
		n.stop()
		c.gone(addr, n, nil)
	}
}

func (c *cell) gone(addr string, n *node, want error) {
	c.set(addr, nil)
	if err := <-n.done; !errors.Is(err, want) {
		c.t.Errorf("%s: ended with %v, want %v", addr, err, want)
	}
	n.stop()
	n.server.Stop()
}

func (c *cell) stopAll() {
	c.net.heal()
	for _, a := range []string{"n1:1", "n2:1", "n3:1", "n4:1", "n5:1"} {
		c.stop(a)
	}
}

// pass lets time pass.
func (c *cell) pass(d time.Duration) { time.Sleep(d) }

func (c *cell) wipe(addr string) {
	if err := os.RemoveAll(c.path(addr)); err != nil {
		c.t.Fatal(err)
	}
}

// until waits for a condition. The clock is fake: an hour of waiting costs nothing, and one that never comes ends the test.
func (c *cell) until(what string, is func() bool) {
	c.t.Helper()
	for range 12_000 {
		if is() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	for _, n := range c.all() {
		c.t.Logf("%s: %+v", n.cfg.Address, n.Status())
	}
	c.t.Fatalf("%s: not within a minute", what)
}

func (n *node) leads() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lead.Leads
}

// leader waits for one that leads among those addresses, or all, and has just had that confirmed.
func (c *cell) leader(among ...string) (found *node) {
	c.t.Helper()
	if len(among) == 0 {
		among = []string{"n1:1", "n2:1", "n3:1", "n4:1", "n5:1"}
	}
	c.until("a leader", func() bool {
		for _, a := range among {
			if n := c.at(a); n != nil && n.leads() && n.Verify(context.Background()) == nil {
				found = n
				return true
			}
		}
		return false
	})
	return found
}

// put commits an entry on a replica and returns what came of it.
func (n *node) put(entry string) (any, error) {
	type outcome struct {
		result any
		err    error
	}
	done := make(chan outcome, 2)
	n.Propose([]byte(entry), func(result any, err error) { done <- outcome{result, err} })
	o := <-done
	return o.result, o.err
}

// write commits entries on whatever leads, and fails the test where that fails.
func (c *cell) write(n *node, entries ...string) {
	c.t.Helper()
	for _, e := range entries {
		if _, err := n.put(e); err != nil {
			c.t.Fatalf("%s: %v", e, err)
		}
	}
}

// same waits until all that run have the same entries, and that many.
func (c *cell) same(count int) {
	c.t.Helper()
	c.until(fmt.Sprintf("%d entries everywhere", count), func() bool {
		var first *registerState
		for _, n := range c.all() {
			s := n.state.now()
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

// waits is how many were proposed and are not settled.
func (p *proposals) waits() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inFlight
}
