package schedd

import (
	"context"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/wire"
)

// What the conversation with the negotiator tells the loop.
type (
	negotiatorConnected struct {
		epoch   uint64
		name    string
		address string
		out     *sendQueue[*wire.FromSchedd]
	}
	negotiatorDisconnected struct {
		out *sendQueue[*wire.FromSchedd]
		err error
	}
	negotiatorMessage struct {
		out     *sendQueue[*wire.FromSchedd]
		message *wire.ToSchedd
	}
)

// limitedGrants lists the grants with licences that this schedd acts upon or has claims
// of, and whether those are all.
func (s *Schedd) limitedGrants() (all bool, list []*wire.HeldGrant) {
	held, all := s.dispatch.LimitedGrants()
	for _, h := range held {
		list = append(list, &wire.HeldGrant{Grant: h.Grant.ID, Epoch: h.Grant.Epoch, Claimed: h.Claimed,
			AdSequence: h.AdSequence})
	}
	return all, list
}

// helloMessage is what the schedd says of itself to a negotiator.
func (s *Schedd) helloMessage() *wire.ScheddHello {
	m := &wire.ScheddHello{Name: s.node.Name, Address: s.node.Schedd.Socket, Started: s.started.UnixNano(), Tells: true}
	m.Lists, m.Grants = s.limitedGrants()
	return m
}

// runNegotiatorStream holds one conversation with the negotiator at the other end of
// conn.
func (s *Schedd) runNegotiatorStream(ctx context.Context, conn *grpc.ClientConn, address string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := wire.NewNegotiatorClient(conn).Negotiate(ctx)
	if err != nil {
		return err
	}
	var hello *wire.ScheddHello
	// The loop has seen the end of the conversation before: no grant of that, or of an
	// earlier one, comes to it any more.
	if err := s.callLoop(ctx, func(time.Time) { hello = s.helloMessage() }); err != nil {
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
	out := newSendQueue[*wire.FromSchedd]()
	s.postEvent(ctx, negotiatorConnected{first.GetHello().GetEpoch(), first.GetHello().GetName(), address, out})
	writer := make(chan struct{})
	go func() {
		defer close(writer)
		defer cancel()
		out.sendAll(ctx, func(all []*wire.FromSchedd) error {
			return s.placer.sendWithProposals(all, attackBand(stream.Send))
		})
	}()
	for err == nil {
		var m *wire.ToSchedd
		if m, err = stream.Recv(); err == nil {
			s.placer.onLeaderMessage(m)
			s.postEvent(ctx, negotiatorMessage{out, m})
		}
	}
	cancel()
	<-writer
	s.postEvent(s.daemonContext, negotiatorDisconnected{out, err})
	return err
}
