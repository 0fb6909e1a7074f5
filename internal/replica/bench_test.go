package replica_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/replica"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// countingMachine is a state machine that counts entries.
type countingMachine struct{ count int }

func (c *countingMachine) Apply(uint64, []byte) any {
	c.count++
	return c.count
}

func (c *countingMachine) Snapshot() (func(io.Writer) error, error) {
	return func(io.Writer) error { return nil }, nil
}

func (c *countingMachine) Restore(io.Reader) error { return nil }

// servedReplicas is three replicas, served as negotiators serve them.
type servedReplicas struct {
	t             testing.TB
	dir           string
	addresses     []string
	nodes         func(int) *rpc.Identity
	stops         [3]func()
	lastLeader    atomic.Pointer[replica.Replica] // the last one that reported to be the leader
	leaderChanges chan struct{}
}

// newServedReplicas opens the sockets of all replicas and starts them. They end with the
// test.
func newServedReplicas(t testing.TB, dir string, addr func(int) string, who func(int) *rpc.Identity) *servedReplicas {
	c := &servedReplicas{t: t, dir: dir, nodes: who, leaderChanges: make(chan struct{}, 1)}
	var listeners []net.Listener
	for i := range 3 {
		l, err := rpc.Listen(addr(i), 0o600)
		if err != nil {
			t.Fatal(err)
		}
		listeners = append(listeners, l)
		if l.Addr().Network() == "tcp" {
			c.addresses = append(c.addresses, l.Addr().String())
		} else {
			c.addresses = append(c.addresses, addr(i))
		}
	}
	for i, l := range listeners {
		c.startReplica(i, l)
	}
	t.Cleanup(func() {
		for _, stop := range c.stops {
			stop()
		}
	})
	return c
}

func (c *servedReplicas) startReplica(i int, l net.Listener) {
	id := c.nodes(i)
	r, err := replica.Open(replica.Config{
		Dir: fmt.Sprintf("%s/%d", c.dir, i), Name: fmt.Sprintf("n%d", i), Address: c.addresses[i], Peers: c.addresses,
		Identity: id, Log: slog.New(slog.DiscardHandler),
	}, &countingMachine{})
	if err != nil {
		c.t.Fatal(err)
	}
	server := rpc.NewServer(id, peer.MethodAccess(), grpc.WaitForHandlers(true))
	r.Register(server)
	go server.Serve(l)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	go c.listenAt(ctx, r)
	c.stops[i] = sync.OnceFunc(func() {
		r.Kill()
		if err := <-done; !errors.Is(err, replica.ErrKilled) {
			c.t.Error(err)
		}
		cancel()
		server.Stop()
	})
}

func (c *servedReplicas) listenAt(ctx context.Context, r *replica.Replica) {
	for {
		select {
		case l := <-r.Leadership():
			if l.IsLeader {
				c.lastLeader.Store(r)
				select {
				case c.leaderChanges <- struct{}{}:
				default:
				}
			}
		case <-ctx.Done():
			return
		}
	}
}

// waitForNewLeader waits until another replica is the leader.
func (c *servedReplicas) waitForNewLeader(was *replica.Replica) *replica.Replica {
	late := time.After(time.Minute)
	for c.lastLeader.Load() == was {
		select {
		case <-c.leaderChanges:
		case <-late:
			c.t.Fatal("nobody leads within a minute")
		}
	}
	return c.lastLeader.Load()
}

// commitEntry commits an entry.
func commitEntry(r *replica.Replica, entry []byte) error {
	lastProblem := make(chan error, 1)
	r.Propose(entry, func(_ any, err error) { lastProblem <- err })
	return <-lastProblem
}

// benchReplicas returns replicas on the disk of /var/tmp, because a temporary directory
// may be in memory, and over unix sockets.
func benchReplicas(b *testing.B) *servedReplicas {
	dir, err := os.MkdirTemp("/var/tmp", "roost-bench-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	return newServedReplicas(b, dir, func(i int) string {
		return fmt.Sprintf("unix:%s/%d.sock", dir, i)
	}, func(int) *rpc.Identity { return nil })
}

// BenchmarkGrants commits entries of several grants each on three replicas, which each
// write to disk. Several entries are in flight at once.
func BenchmarkGrants(b *testing.B) {
	for _, grants := range []int{1, 10, 100} {
		for _, flying := range []int{1, 16} {
			b.Run(fmt.Sprintf("grants=%d/flying=%d", grants, flying), func(b *testing.B) {
				leader := benchReplicas(b).waitForNewLeader(nil)
				entry := grantsEntry(grants)
				room := make(chan struct{}, flying)
				var failed atomic.Pointer[error]
				for b.Loop() {
					room <- struct{}{}
					leader.Propose(entry, func(_ any, err error) {
						if err != nil {
							failed.Store(&err)
						}
						<-room
					})
				}
				for range flying {
					room <- struct{}{}
				}
				if err := failed.Load(); err != nil {
					b.Fatal(*err)
				}
				b.ReportMetric(float64(b.N*grants)/b.Elapsed().Seconds(), "grants/s")
				b.ReportMetric(float64(len(entry)), "B/entry")
			})
		}
	}
}

// grantsEntry returns a leader's entry for a cycle with n grants.
func grantsEntry(n int) []byte {
	e := ledger.LogEntry{At: time.Now().UnixNano(), Epoch: uint64(time.Now().Unix())}
	for i := range n {
		e.Grants = append(e.Grants, ledger.RecordedGrant{
			ID: uint64(1000 + i), Units: 1, Schedd: "submit.example.org", Request: 17,
			Submitter: fairshare.Submitter{Owner: "ann"}, Band: roost.BatchBand,
			Machine: fmt.Sprintf("node%04d.example.org", i), Started: e.At,
			Resources: roost.Resources{CPU: 1000, Memory: 2 * roost.GiB, Disk: roost.GiB},
		})
	}
	return e.Encode(nil)
}

// BenchmarkFailover kills the leader of three, and measures the time until another has
// committed an entry. The result is the median of as many failovers as the benchmark's
// iterations: 11 with -benchtime 11x.
func BenchmarkFailover(b *testing.B) {
	var took []time.Duration
	for b.Loop() {
		b.StopTimer()
		c := benchReplicas(b)
		first := c.waitForNewLeader(nil)
		if err := commitEntry(first, []byte("before")); err != nil {
			b.Fatal(err)
		}
		var stop func()
		for i, addr := range c.addresses {
			if first.Status().Leader == addr {
				stop = c.stops[i]
			}
		}
		b.StartTimer()
		begun := time.Now()
		go stop()
		second := c.waitForNewLeader(first)
		if err := commitEntry(second, []byte("after")); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begun))
		b.StopTimer()
		stop()
		for _, s := range c.stops {
			s()
		}
		b.StartTimer()
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Milliseconds()), "ms-median")
	b.ReportMetric(float64(took[len(took)-1].Milliseconds()), "ms-most")
}
