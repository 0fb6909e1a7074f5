package schedd

import (
	"context"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/auth"
	"github.com/roost-batch/roost/internal/rpc"
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

// keepNegotiating holds one conversation after the other with whichever negotiator answers, until ctx ends.
func (s *Schedd) keepNegotiating(ctx context.Context) {
	wait := firstRetry
	for turn := 0; ctx.Err() == nil && len(s.node.Negotiators) > 0; turn++ {
		began := time.Now()
		err := s.negotiate(ctx, s.node.Negotiators[turn%len(s.node.Negotiators)])
		s.log.Debug("negotiator gone", "error", rpc.FromStatus(err))
		if time.Since(began) > lastRetry {
			wait = firstRetry
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, lastRetry)
	}
}

// negotiate holds one conversation with the negotiator at that address.
func (s *Schedd) negotiate(ctx context.Context, address string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn, err := rpc.Dial(address, s.identity, auth.Negotiator)
	if err != nil {
		return err
	}
	defer conn.Close()
	stream, err := wire.NewNegotiatorClient(conn).Negotiate(ctx, grpc.WaitForReady(len(s.node.Negotiators) == 1))
	if err != nil {
		return err
	}
	hello := &wire.ScheddHello{Name: s.node.Name, Address: s.node.Schedd.Socket, Started: s.started.UnixNano()}
	if err := stream.Send(&wire.FromSchedd{Of: &wire.FromSchedd_Hello{Hello: hello}}); err != nil {
		return err
	}
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	out := newOutbox[*wire.FromSchedd]()
	s.post(ctx, negotiatorUp{first.GetHello().GetEpoch(), first.GetHello().GetName(), address, out})
	writer := make(chan struct{})
	go func() {
		defer close(writer)
		defer cancel()
		out.pump(ctx, stream.Send)
	}()
	for err == nil {
		var m *wire.ToSchedd
		if m, err = stream.Recv(); err == nil {
			s.post(ctx, negotiatorNews{out, m})
		}
	}
	cancel()
	<-writer
	s.post(s.life, negotiatorDown{out, err})
	return err
}
