package negotiator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/auth"
	"github.com/roost-batch/roost/internal/fault"
	"github.com/roost-batch/roost/internal/wire"
)

// service answers the calls of wire.Negotiator.
type service struct {
	wire.UnimplementedNegotiatorServer
	loop   *loop
	admin  *administration
	name   string
	log    *slog.Logger
	verify func(context.Context) error // nil: a majority has just said that this negotiator still leads

	writing sync.Mutex // held while a checkpoint is written
}

// lateAfter is how old a decision may be that is sent without asking whether this negotiator still leads. One that was stopped for a while, by a
// signal or with its whole machine, goes on in the middle of what it was doing, and knows nothing of the leader that has come meanwhile. It is much
// less than [ledger.FlightLife], for which that one counts with the grant.
const lateAfter = 2 * time.Second

// conversation is the stream of one schedd.
type conversation = grpc.BidiStreamingServer[wire.FromSchedd, wire.ToSchedd]

// Negotiate holds the conversation with one schedd until either side ends it, or another negotiator leads. A newer one of the same schedd ends
// this one.
func (s *service) Negotiate(stream conversation) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	hello, err := s.greet(stream)
	if err != nil {
		return err
	}
	name, mail := hello.GetName(), newMailbox()
	if derr := s.loop.do(ctx, func(now time.Time) { err = s.loop.joined(now, hello, mail) }); derr != nil || err != nil {
		return cmp.Or(derr, err)
	}
	s.log.Info("schedd joined", "schedd", name)
	defer s.log.Info("schedd left", "schedd", name)
	defer s.loop.post(context.WithoutCancel(ctx), func(now time.Time) { s.loop.left(now, name, mail) })
	heard := make(chan error, 1)
	go func() { heard <- s.listen(ctx, stream.Recv, name, mail) }()
	for {
		select {
		case <-mail.ready:
			if err := s.deliver(ctx, stream, mail); err != nil {
				return err
			}
		case err := <-heard:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-s.loop.done:
			return errStopping
		}
	}
}

// A negotiator says who leads every beat though nothing has changed, and promises to do so within silence: so who watches finds out that it cannot be
// reached long before TCP does, which for a path that was cut and has healed tries again at ever longer intervals.
const (
	beat    = time.Second
	silence = 3 * time.Second
)

// Watch tells who leads, at once, whenever it changes, and every beat.
func (s *service) Watch(_ *wire.WatchLeader, stream grpc.ServerStreamingServer[wire.LeaderNews]) error {
	again := time.NewTicker(beat)
	defer again.Stop()
	for {
		p, changed := s.loop.standing.look()
		news := &wire.LeaderNews{Name: s.name, Epoch: p.epoch, Leads: p.leads, Leader: p.leader, WithinMs: uint32(silence.Milliseconds())}
		if err := stream.Send(news); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-again.C:
		case <-stream.Context().Done():
			return stream.Context().Err()
		case <-s.loop.done:
			return errStopping
		}
	}
}

// Cell answers a question about the cell, or does what an administrator wishes.
func (s *service) Cell(ctx context.Context, req *wire.CellRequest) (*wire.CellReply, error) {
	return s.admin.answer(ctx, req)
}

// greet reads the hello. A node speaks for its own schedds only.
func (s *service) greet(stream conversation) (*wire.ScheddHello, error) {
	m, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	name := m.GetHello().GetName()
	if name == "" {
		return nil, fmt.Errorf("negotiate: %w: the first message is not a hello with a name", roost.Invalid)
	}
	p, _ := auth.FromContext(stream.Context())
	if !p.Local && name != p.Name && !strings.HasSuffix(name, "@"+p.Name) {
		return nil, fmt.Errorf("schedd %q: %w: %s may only speak for its own", name, roost.PermissionDenied, p.Name)
	}
	return m.GetHello(), nil
}

// Bounds on what of one conversation waits for the loop: bytes, or one message that is longer. A message counts as some more than it has, so that
// conversations with many short ones do not fill the loop's inbox either.
const (
	conversationBytes = 8 << 20
	messageBytes      = 16 << 10
)

// listen takes in what the schedd says, no faster than the loop does. It ends with the stream: ctx is that of the handler.
func (s *service) listen(ctx context.Context, recv func() (*wire.FromSchedd, error), name string, mail *mailbox) error {
	room := semaphore.NewWeighted(conversationBytes)
	for {
		m, err := recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		size := min(int64(proto.Size(m))+messageBytes, conversationBytes)
		if err := room.Acquire(ctx, size); err != nil {
			return err
		}
		s.loop.post(ctx, func(now time.Time) {
			defer room.Release(size)
			if err := s.loop.heard(now, name, mail, m); err != nil {
				s.log.Warn("schedd ended", "schedd", name, "err", err)
				mail.end(err)
			}
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// deliver sends all that waits.
func (s *service) deliver(ctx context.Context, stream conversation, mail *mailbox) error {
	messages, since, ended := mail.take()
	if age := elapsed(since); !since.IsZero() && age > lateAfter {
		if err := s.confirm(ctx, age); err != nil {
			return err
		}
	}
	for _, m := range messages {
		if hello := m.GetHello(); hello != nil {
			hello.Name = s.name
		}
		if m.GetGrant() != nil {
			fault.Point(fault.NegotiatorBeforeGrant)
		}
		if err := stream.Send(m); err != nil {
			return err
		}
		if m.GetGrant() != nil {
			fault.Point(fault.NegotiatorAfterGrant)
		}
	}
	return ended
}

// confirm makes sure that this negotiator leads before it sends what it decided long ago.
func (s *service) confirm(ctx context.Context, age time.Duration) error {
	age = age.Round(time.Millisecond)
	ctx, cancel := context.WithTimeout(ctx, lateAfter)
	defer cancel()
	if err := s.verify(ctx); err != nil {
		s.log.Warn("grants are not sent, as they are late and another may lead", "age", age, "err", err)
		return fmt.Errorf("grants of %v ago: %w: %w", age, roost.Stale, err)
	}
	s.log.Info("grants are sent late", "age", age)
	return nil
}

// elapsed is how long ago that was. The clock by which Go measures stands still while the machine sleeps, and the other is put back and forth: what is
// too much costs a question.
func elapsed(since time.Time) time.Duration {
	return max(time.Since(since), time.Now().Round(0).Sub(since.Round(0)))
}
