package schedd

import (
	"testing"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/auth"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// fakeNegotiator grants whatever is wanted, all of it on one node.
type fakeNegotiator struct {
	wire.UnimplementedNegotiatorServer
	node, address string
	updates       chan *wire.RequestUpdate // what it was told
}

// negotiate serves a negotiator at an address until the test ends.
func negotiate(t testing.TB, address, node, startd string) *fakeNegotiator {
	t.Helper()
	n := &fakeNegotiator{node: node, address: startd, updates: make(chan *wire.RequestUpdate, 1000)}
	serve(t, address, func(s *grpc.Server) { wire.RegisterNegotiatorServer(s, n) })
	return n
}

// serve serves at an address until the test ends.
func serve(t testing.TB, address string, register func(*grpc.Server)) {
	t.Helper()
	l, err := rpc.Listen(address, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	s := rpc.NewServer(nil, auth.Methods())
	register(s)
	done := make(chan struct{})
	go func() { defer close(done); s.Serve(l) }()
	t.Cleanup(func() { s.Stop(); <-done })
}

func (n *fakeNegotiator) Negotiate(stream grpc.BidiStreamingServer[wire.FromSchedd, wire.ToSchedd]) error {
	hello := &wire.ToSchedd{Of: &wire.ToSchedd_Hello{Hello: &wire.NegotiatorHello{Epoch: 1, Name: "fake"}}}
	if err := stream.Send(hello); err != nil {
		return err
	}
	var last uint64
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		r := m.GetRequest()
		if r == nil {
			continue
		}
		n.updates <- r
		for on := last - r.GetGrantsSeen(); on < uint64(r.GetWanted()); on++ { // what is on its way is wanted, too
			last++
			if err := stream.Send(&wire.ToSchedd{Of: &wire.ToSchedd_Grant{Grant: &wire.Grant{
				Id: last, Request: r.GetId(), Node: n.node, Address: n.address, Resources: r.GetResources(), Epoch: 1, Owner: r.GetOwner(),
			}}}); err != nil {
				return err
			}
		}
	}
}
