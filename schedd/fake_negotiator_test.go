package schedd

import (
	"context"
	"sync"
	"testing"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// fakeNegotiator grants whatever is wanted, all of it on one node.
type fakeNegotiator struct {
	wire.UnimplementedNegotiatorServer
	node, address string
	updates       chan *wire.RequestUpdate // what it was told
	openedEpochs  chan uint64              // the epochs in which conversations began
	closedEpochs  chan uint64              // and ended
	adminRequests chan *wire.CellRequest   // of administrators

	demands  chan *wire.Demand
	hellos   chan *wire.ScheddHello
	outcomes chan *wire.Outcome

	// answers what is asked of secrets; nil: it does not lead
	secrets func(context.Context, *wire.SecretsRequest) (*wire.SecretsReply, error)

	mu           sync.Mutex
	claimBy      int64                            // of its grants
	policy       *wire.Policy                     // sent when a conversation begins
	admits       func(*wire.Admit) *wire.Admitted // nil: it does not answer
	leaderReport *wire.LeaderNews
	changed      chan struct{}
	disconnect   chan struct{} // closed: conversations end
}

// serveNegotiator serves a negotiator that leads with epoch 1 at an address until the
// test ends.
func serveNegotiator(t testing.TB, address, node, startd string) *fakeNegotiator {
	t.Helper()
	n := &fakeNegotiator{
		node: node, address: startd, updates: make(chan *wire.RequestUpdate, 1000),
		openedEpochs: make(chan uint64, 100), closedEpochs: make(chan uint64, 100),
		adminRequests: make(chan *wire.CellRequest, 100), demands: make(chan *wire.Demand, 100),
		hellos: make(chan *wire.ScheddHello, 100), outcomes: make(chan *wire.Outcome, 100),
		leaderReport: &wire.LeaderNews{Name: "fake", Epoch: 1, Leads: true, Leader: address},
		changed:      make(chan struct{}), disconnect: make(chan struct{}),
	}
	serve(t, address, func(s *rpc.Server) { wire.RegisterNegotiatorServer(s, n) })
	return n
}

// serve serves at an address until the test ends.
func serve(t testing.TB, address string, register func(*rpc.Server)) {
	t.Helper()
	l, err := rpc.Listen(address, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	s := rpc.NewServer(nil, peer.MethodAccess())
	register(s)
	done := make(chan struct{})
	go func() { defer close(done); s.Serve(l) }()
	t.Cleanup(func() { s.Stop(); <-done })
}

// reportLeader changes what it says of who leads.
func (n *fakeNegotiator) reportLeader(event *wire.LeaderNews) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leaderReport = event
	close(n.changed)
	n.changed = make(chan struct{})
}

// endStreams ends the present conversations.
func (n *fakeNegotiator) endStreams() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.disconnect)
	n.disconnect = make(chan struct{})
}

func (n *fakeNegotiator) currentLeader() (*wire.LeaderNews, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.leaderReport, n.changed
}

func (n *fakeNegotiator) Watch(_ *wire.WatchLeader, stream grpc.ServerStreamingServer[wire.LeaderNews]) error {
	for {
		event, changed := n.currentLeader()
		if err := stream.Send(event); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return nil
		}
	}
}

func (n *fakeNegotiator) Negotiate(stream grpc.BidiStreamingServer[wire.FromSchedd, wire.ToSchedd]) error {
	n.mu.Lock()
	hangs := n.disconnect
	n.mu.Unlock()
	event, _ := n.currentLeader()
	epoch := event.GetEpoch()
	n.openedEpochs <- epoch
	defer func() { n.closedEpochs <- epoch }()
	n.mu.Lock()
	policy := n.policy
	n.mu.Unlock()
	hello := &wire.ToSchedd{Of: &wire.ToSchedd_Hello{Hello: &wire.NegotiatorHello{Epoch: epoch, Name: "fake"}}}
	if err := stream.Send(hello); err != nil {
		return err
	}
	if policy != nil {
		if err := stream.Send(&wire.ToSchedd{Of: &wire.ToSchedd_Policy{Policy: policy}}); err != nil {
			return err
		}
	}
	received := make(chan error, 1)
	go func() { received <- n.grant(stream, epoch) }()
	select {
	case <-hangs:
		return nil
	case err := <-received:
		return err
	}
}

func (n *fakeNegotiator) grant(stream grpc.BidiStreamingServer[wire.FromSchedd, wire.ToSchedd], epoch uint64) error {
	var last uint64
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		if err := n.answerAdmit(stream, m); err != nil {
			return err
		}
		r := m.GetRequest()
		if r == nil {
			continue
		}
		n.updates <- r
		gang, members := uint64(0), uint32(0)
		for on := last - r.GetGrantsSeen(); on < uint64(r.GetWanted()); on++ { // what is on its way is wanted, too
			if last++; r.GetGang() > 1 && members%r.GetGang() == 0 {
				gang = last
			}
			members++
			if err := stream.Send(&wire.ToSchedd{Of: &wire.ToSchedd_Grant{Grant: &wire.Grant{
				Id: last, Request: r.GetId(), Node: n.node, Address: n.address, Resources: r.GetResources(),
				Epoch: epoch, Owner: r.GetOwner(), ClaimBy: n.by(), Gang: gang, GangSize: r.GetGang(),
			}}}); err != nil {
				return err
			}
		}
	}
}

func (n *fakeNegotiator) ReadSecrets(ctx context.Context, req *wire.SecretsRequest) (*wire.SecretsReply, error) {
	n.mu.Lock()
	answer := n.secrets
	n.mu.Unlock()
	if answer == nil {
		return nil, roost.Unavailable
	}
	return answer(ctx, req)
}

func (n *fakeNegotiator) by() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.claimBy
}

// answerAdmit answers about quotas.
func (n *fakeNegotiator) answerAdmit(stream grpc.BidiStreamingServer[wire.FromSchedd, wire.ToSchedd],
	m *wire.FromSchedd) error {
	if h := m.GetHello(); h != nil {
		n.hellos <- h
	}
	if o := m.GetOutcome(); o != nil {
		select {
		case n.outcomes <- o:
		default: // nobody looks at so many
		}
	}
	if d := m.GetDemand(); d != nil {
		n.demands <- d
	}
	n.mu.Lock()
	admits := n.admits
	n.mu.Unlock()
	if m.GetAdmit() == nil || admits == nil {
		return nil
	}
	return stream.Send(&wire.ToSchedd{Of: &wire.ToSchedd_Admitted{Admitted: admits(m.GetAdmit())}})
}
