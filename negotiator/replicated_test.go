package negotiator

import (
	"context"
	"crypto/sha256"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/auth"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// trio is three negotiators that decide together. Each has a collector of its own, which the test plays.
type trio struct {
	*testing.T
	net   *network
	nodes []string
	pools map[string]*pool
	stops map[string]func()
}

func newTrio(t *testing.T) *trio {
	dir := t.TempDir()
	c := &trio{T: t, net: newNetwork(t, dir), nodes: names(3), pools: map[string]*pool{}, stops: map[string]func(){}}
	var addresses []string
	for _, name := range c.nodes {
		addresses = append(addresses, c.net.address(name))
	}
	for _, name := range c.nodes {
		p := poolAt(t, filepath.Join(t.TempDir()), name, c.net.address(name))
		p.node.Negotiators, p.dial = addresses, c.net.dialer(name)
		c.pools[name] = p
		c.stops[name] = p.start()
		p.machine("n1", 1, 16)
		p.collector.deltas <- &wire.AdDelta{Synced: true}
	}
	return c
}

// leader waits until one of those nodes leads with an epoch above another's, and returns it.
func (c *trio) leader(above uint64, nodes ...string) (leader string, epoch uint64) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), 30*time.Second)
	defer cancel()
	type sight struct {
		node  string
		epoch uint64
	}
	found := make(chan sight, len(nodes))
	for _, node := range nodes {
		go func() {
			for news := range c.watch(ctx, node) {
				if news.GetLeads() && news.GetEpoch() > above {
					found <- sight{node, news.GetEpoch()}
					return
				}
			}
		}()
	}
	select {
	case s := <-found:
		return s.node, s.epoch
	case <-ctx.Done():
		c.Fatalf("none of %v leads", nodes)
		return "", 0
	}
}

// watch hears who leads from one node, until ctx ends.
func (c *trio) watch(ctx context.Context, node string) <-chan *wire.LeaderNews {
	heard := make(chan *wire.LeaderNews)
	conn, err := rpc.Dial(c.net.address(node), nil, auth.Negotiator)
	if err != nil {
		c.Fatal(err)
	}
	go func() {
		defer close(heard)
		defer conn.Close()
		stream, err := wire.NewNegotiatorClient(conn).Watch(ctx, &wire.WatchLeader{}, grpc.WaitForReady(true))
		for err == nil {
			var news *wire.LeaderNews
			if news, err = stream.Recv(); err == nil {
				select {
				case heard <- news:
				case <-ctx.Done():
				}
			}
		}
	}()
	return heard
}

func (c *trio) others(node string) (rest []string) {
	for _, other := range c.nodes {
		if other != node {
			rest = append(rest, other)
		}
	}
	return rest
}

// TestNewLeaderGrants holds that when the leader dies another goes on where it was: with a higher epoch, with numbers of grants that were never
// used, and with machines that it knows already.
func TestNewLeaderGrants(t *testing.T) {
	c := newTrio(t)
	old, epoch := c.leader(0, c.nodes...)
	stream, _ := c.pools[old].join("s")
	c.pools[old].say(stream, wish(1, 3, 0))
	var last uint64
	for range 3 {
		last = c.pools[old].hearGrant(stream).GetId()
	}
	began := time.Now()
	c.stops[old]()
	next, higher := c.leader(epoch, c.others(old)...)
	stream, _ = c.pools[next].join("s")
	c.pools[next].say(stream, wish(1, 1, 0))
	g := c.pools[next].hearGrant(stream)
	t.Logf("from the end of the leader to the next grant: %v", time.Since(began))
	if g.GetEpoch() != higher || g.GetEpoch() <= epoch || g.GetId() <= last || !wire.CheckCapability(testKey, g, "") {
		t.Errorf("after grant %d of epoch %d: %v", last, epoch, g)
	}
}

// TestIsolatedLeader holds that a leader which is cut off from the others grants nothing from then on to the schedds on its side, while the others
// elect a leader that does; and that after the cut all say the same.
func TestIsolatedLeader(t *testing.T) {
	c := newTrio(t)
	old, epoch := c.leader(0, c.nodes...)
	here := c.pools[old]
	stream, _ := here.join("s1")
	here.say(stream, wish(1, 1, 0))
	last := here.hearGrant(stream)

	began := time.Now()
	c.net.isolate(old, c.others(old), true)
	here.say(stream, wish(1, 5, last.GetId()))
	for {
		m, err := stream.Recv()
		if err != nil {
			if !errors.Is(rpc.FromStatus(err), roost.Unavailable) {
				t.Errorf("the conversation with the isolated leader ends with %v", err)
			}
			break
		}
		if g := m.GetGrant(); g != nil {
			t.Fatalf("the isolated leader granted %v", g)
		}
	}
	next, higher := c.leader(epoch, c.others(old)...)
	there := c.pools[next]
	other, _ := there.join("s2")
	there.say(other, wish(1, 5, 0))
	if g := there.hearGrant(other); g.GetEpoch() != higher || g.GetId() <= last.GetId() {
		t.Errorf("after grant %d of epoch %d: %v", last.GetId(), epoch, g)
	}
	t.Logf("from the cut to the next grant: %v", time.Since(began))
	there.say(other, &wire.FromSchedd{Of: &wire.FromSchedd_Usage{Usage: &wire.Usage{Owner: "ann", Held: wire.FromResources(roost.Resources{CPU: 1000})}}})

	c.net.isolate(old, c.others(old), false)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for news := range c.watch(ctx, old) {
		if news.GetEpoch() >= higher && news.GetLeader() != "" && !news.GetLeads() {
			break
		}
	}
	c.same()
}

// same waits until all replicas hold the same, with what the one submitter uses in it.
func (c *trio) same() {
	c.Helper()
	patience := time.After(time.Minute)
	for {
		hashes := map[[sha256.Size]byte]bool{}
		charged := true
		for _, node := range c.nodes {
			c.pools[node].server.record.look(func(l *ledger.Ledger) {
				hashes[l.Hash()] = true
				charged = charged && len(l.Book().Submitters()) == 1
			})
		}
		if len(hashes) == 1 && charged {
			return
		}
		select {
		case <-c.pools["c1"].applied:
		case <-c.pools["c2"].applied:
		case <-c.pools["c3"].applied:
		case <-patience:
			c.Fatalf("the replicas hold %d different states, and what is used is in them: %v", len(hashes), charged)
		}
	}
}
