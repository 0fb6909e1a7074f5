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
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// threeNegotiators is a cell of three negotiators. Each has a collector that the test
// controls.
type threeNegotiators struct {
	*testing.T
	network *socketNetwork
	nodes   []string
	pools   map[string]*collectorTest
	stops   map[string]func()
}

func newThreeNegotiators(t *testing.T) *threeNegotiators {
	dir := t.TempDir()
	c := &threeNegotiators{T: t, network: newSocketNetwork(t, dir), nodes: nodeNames(3),
		pools: map[string]*collectorTest{}, stops: map[string]func(){}}
	var addresses []string
	for _, name := range c.nodes {
		addresses = append(addresses, c.network.address(name))
	}
	for _, name := range c.nodes {
		p := collectorTestAt(t, filepath.Join(t.TempDir()), name, c.network.address(name))
		p.node.Negotiators, p.dial = addresses, c.network.dialer(name)
		c.pools[name] = p
		c.stops[name] = p.startNegotiator()
		p.addMachine("n1", 1, 16)
		p.collector.deltas <- &wire.AdDelta{Synced: true}
	}
	return c
}

// waitForLeader waits until one of those nodes leads with an epoch above another's, and
// returns it.
func (c *threeNegotiators) waitForLeader(above uint64, nodes ...string) (leader string, epoch uint64) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), 30*time.Second)
	defer cancel()
	type observation struct {
		node  string
		epoch uint64
	}
	found := make(chan observation, len(nodes))
	for _, node := range nodes {
		go func() {
			for update := range c.watchLeader(ctx, node) {
				if update.GetLeads() && update.GetEpoch() > above {
					found <- observation{node, update.GetEpoch()}
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

// watchLeader receives one node's reports of who leads, until ctx ends.
func (c *threeNegotiators) watchLeader(ctx context.Context, node string) <-chan *wire.LeaderNews {
	received := make(chan *wire.LeaderNews)
	conn, err := rpc.Dial(c.network.address(node), nil, peer.Negotiator)
	if err != nil {
		c.Fatal(err)
	}
	go func() {
		defer close(received)
		defer conn.Close()
		stream, err := wire.NewNegotiatorClient(conn).Watch(ctx, &wire.WatchLeader{}, grpc.WaitForReady(true))
		for err == nil {
			var update *wire.LeaderNews
			if update, err = stream.Recv(); err == nil {
				select {
				case received <- update:
				case <-ctx.Done():
				}
			}
		}
	}()
	return received
}

func (c *threeNegotiators) otherNodes(node string) (rest []string) {
	for _, other := range c.nodes {
		if other != node {
			rest = append(rest, other)
		}
	}
	return rest
}

// TestNewLeaderGrants checks that after the leader's death another one continues where it
// was. It has a higher epoch, new numbers of grants, and already knows the machines.
func TestNewLeaderGrants(t *testing.T) {
	c := newThreeNegotiators(t)
	old, epoch := c.waitForLeader(0, c.nodes...)
	stream, _ := c.pools[old].joinSchedd("s")
	c.pools[old].sendMessage(stream, requestMessage(1, 3, 0))
	var last uint64
	for range 3 {
		last = c.pools[old].receiveGrant(stream).GetId()
	}
	began := time.Now()
	c.stops[old]()
	next, higher := c.waitForLeader(epoch, c.otherNodes(old)...)
	stream, _ = c.pools[next].joinSchedd("s")
	c.pools[next].sendMessage(stream, requestMessage(1, 1, 0))
	g := c.pools[next].receiveGrant(stream)
	t.Logf("from the end of the leader to the next grant: %v", time.Since(began))
	if g.GetEpoch() != higher || g.GetEpoch() <= epoch || g.GetId() <= last || !wire.CheckClaimToken(testKey, g, "") {
		t.Errorf("after grant %d of epoch %d: %v", last, epoch, g)
	}
}

// TestIsolatedLeader checks a leader that is cut off from the others. It grants nothing
// more to the schedds on its side, while the others elect a leader that does. After the
// cut all agree.
func TestIsolatedLeader(t *testing.T) {
	c := newThreeNegotiators(t)
	old, epoch := c.waitForLeader(0, c.nodes...)
	here := c.pools[old]
	stream, _ := here.joinSchedd("s1")
	here.sendMessage(stream, requestMessage(1, 1, 0))
	last := here.receiveGrant(stream)

	began := time.Now()
	c.network.isolateNode(old, c.otherNodes(old), true)
	here.sendMessage(stream, requestMessage(1, 5, last.GetId()))
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
	next, higher := c.waitForLeader(epoch, c.otherNodes(old)...)
	there := c.pools[next]
	other, _ := there.joinSchedd("s2")
	there.sendMessage(other, requestMessage(1, 5, 0))
	if g := there.receiveGrant(other); g.GetEpoch() != higher || g.GetId() <= last.GetId() {
		t.Errorf("after grant %d of epoch %d: %v", last.GetId(), epoch, g)
	}
	t.Logf("from the cut to the next grant: %v", time.Since(began))
	there.sendMessage(other, &wire.FromSchedd{Of: &wire.FromSchedd_Usage{Usage: &wire.Usage{Owner: "ann",
		Held: wire.FromResources(roost.Resources{CPU: 1000})}}})

	c.network.isolateNode(old, c.otherNodes(old), false)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for update := range c.watchLeader(ctx, old) {
		if update.GetEpoch() >= higher && update.GetLeader() != "" && !update.GetLeads() {
			break
		}
	}
	c.waitForSameState()
}

// waitForSameState waits until all replicas have the same state, with the usage of the
// only submitter in it.
func (c *threeNegotiators) waitForSameState() {
	c.Helper()
	patience := time.After(time.Minute)
	for {
		hashes := map[[sha256.Size]byte]bool{}
		charged := true
		for _, node := range c.nodes {
			c.pools[node].server.ledgerStore.view(func(l *ledger.Ledger) {
				hashes[l.Hash()] = true
				charged = charged && len(l.Accountant().Submitters()) == 1
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
