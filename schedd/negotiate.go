package schedd

import (
	"context"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/wire"
)

// What the conversation with the negotiator tells the loop.
type (
	negotiatorUp struct {
		epoch   uint64
		name    string
		address string
		out     *outbox[*wire.FromSchedd]
	}
	negotiatorDown struct {
		out *outbox[*wire.FromSchedd]
		err error
	}
	negotiatorNews struct {
		out     *outbox[*wire.FromSchedd]
		message *wire.ToSchedd
	}
)

// licensed lists the grants with licences that this schedd acts upon or has claims of, and whether those are all.
func (s *Schedd) licensed() (all bool, list []*wire.HeldGrant) {
	held, all := s.dispatch.Licensed()
	for _, h := range held {
		list = append(list, &wire.HeldGrant{Grant: h.Grant.ID, Epoch: h.Grant.Epoch, Claimed: h.Claimed, AdSequence: h.AdSequence})
	}
	return all, list
}

// hello is what the schedd says of itself to a negotiator.
func (s *Schedd) hello() *wire.ScheddHello {
	m := &wire.ScheddHello{Name: s.node.Name, Address: s.node.Schedd.Socket, Started: s.started.UnixNano(), Tells: true}
	m.Lists, m.Grants = s.licensed()
	return m
}

// negotiate holds one conversation with the negotiator at the other end of conn.
func (s *Schedd) negotiate(ctx context.Context, conn *grpc.ClientConn, address string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := wire.NewNegotiatorClient(conn).Negotiate(ctx)
	if err != nil {
		return err
	}
	var hello *wire.ScheddHello
	// The loop has seen the end of the conversation before: no grant of that, or of an earlier one, comes to it any more.
	if err := s.ask(ctx, func(time.Time) { hello = s.hello() }); err != nil {
		return err
	}
	if err := stream.Send(&wire.FromSchedd{Of: &wire.FromSchedd_Hello{Hello: hello}}); err != nil {
		return err
	}
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	s.attackLeader(ctx, wire.NewNegotiatorClient(conn), stream.Send)
	out := newOutbox[*wire.FromSchedd]()
	s.post(ctx, negotiatorUp{first.GetHello().GetEpoch(), first.GetHello().GetName(), address, out})
	writer := make(chan struct{})
	go func() {
		defer close(writer)
		defer cancel()
		out.pumpAll(ctx, func(all []*wire.FromSchedd) error { return s.placer.send(all, attackBand(stream.Send)) })
	}()
	for err == nil {
		var m *wire.ToSchedd
		if m, err = stream.Recv(); err == nil {
			s.placer.hear(m)
			s.post(ctx, negotiatorNews{out, m})
		}
	}
	cancel()
	<-writer
	s.post(s.life, negotiatorDown{out, err})
	return err
}
