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
	"github.com/roost-batch/roost/internal/failpoint"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/tasktrace"
	"github.com/roost-batch/roost/internal/wire"
)

// grpcService serves the calls of wire.Negotiator.
type grpcService struct {
	wire.UnimplementedNegotiatorServer
	loop         *decisionLoop
	admin        *adminService
	name         string
	log          *slog.Logger
	verifyLeader func(context.Context) error // nil error: a majority has just confirmed that this negotiator leads

	checkpointMu sync.Mutex // held while a checkpoint is written
}

// maxUnverifiedAge is the age up to which a decision is sent without confirming
// leadership. A negotiator that was stopped for a while, by a signal or with its host,
// continues where it was and does not know of a leader that has come meanwhile. The age
// is much less than [ledger.PendingGrantTTL], for which the new leader counts the grant.
const maxUnverifiedAge = 2 * time.Second

// scheddStream is the stream of one schedd.
type scheddStream = grpc.BidiStreamingServer[wire.FromSchedd, wire.ToSchedd]

// Negotiate serves the session of one schedd until either side ends it, or another
// negotiator leads. A newer session of the same schedd ends this one.
func (s *grpcService) Negotiate(stream scheddStream) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	hello, err := s.readHello(stream)
	if err != nil {
		return err
	}
	name, mail := hello.GetName(), newSendQueue()
	mail.guestOf = guestOf(stream.Context())
	if derr := s.loop.runInLoop(ctx, func(now time.Time) {
		if err = s.loop.onJoined(now, hello, mail); err == nil {
			s.loop.cell.schedds[name].namesSubmitHosts = mayNameSubmitHosts(stream.Context(), name)
		}
	}); derr != nil || err != nil {
		return cmp.Or(derr, err)
	}
	s.log.Info("schedd joined", "schedd", name)
	defer s.log.Info("schedd left", "schedd", name)
	defer s.loop.postEvent(context.WithoutCancel(ctx), func(now time.Time) { s.loop.onLeft(now, name, mail) })
	received := make(chan error, 1)
	go func() { received <- s.receiveMessages(ctx, stream.Recv, name, mail) }()
	for {
		select {
		case <-mail.ready:
			if err := s.sendWaiting(ctx, stream, mail); err != nil {
				return err
			}
		case err := <-received:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-s.loop.done:
			return errStopping
		}
	}
}

// A negotiator reports who leads every heartbeatInterval, and promises the next report
// within silenceTimeout. So a watcher notices an unreachable negotiator long before TCP
// does. After a broken path has healed, TCP retries at ever longer intervals.
const (
	heartbeatInterval = time.Second
	silenceTimeout    = 3 * time.Second
)

// Watch reports who leads, on every change and every heartbeat.
func (s *grpcService) Watch(_ *wire.WatchLeader, stream grpc.ServerStreamingServer[wire.LeaderNews]) error {
	again := time.NewTicker(heartbeatInterval)
	defer again.Stop()
	for {
		p, changed := s.loop.leadership.currentState()
		update := &wire.LeaderNews{Name: s.name, Epoch: p.epoch, Leads: p.isLeader, Leader: p.leader,
			WithinMs: uint32(silenceTimeout.Milliseconds())}
		if err := stream.Send(update); err != nil {
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

// Cell answers a query about the cell, or executes an administrator's command.
func (s *grpcService) Cell(ctx context.Context, req *wire.CellRequest) (*wire.CellReply, error) {
	return s.admin.handleRequest(ctx, req)
}

// readHello reads the hello. A node may speak for its own schedds only.
func (s *grpcService) readHello(stream scheddStream) (*wire.ScheddHello, error) {
	m, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	name := m.GetHello().GetName()
	if name == "" {
		return nil, fmt.Errorf("negotiate: %w: the first message is not a hello with a name", roost.Invalid)
	}
	p, _ := peer.FromContext(stream.Context())
	if !p.SpeaksFor(name) && !strings.HasSuffix(name, "@"+p.Name) {
		return nil, fmt.Errorf("schedd %q: %w: %s may only speak for its own schedds",
			name, roost.PermissionDenied, p.Name)
	}
	return m.GetHello(), nil
}

// Bounds on what of one session waits for the loop: bytes, or one longer message. Each
// message counts as somewhat more than its size, so that sessions with many short ones do
// not fill the loop's inbox either.
const (
	conversationBytes = 8 << 20
	messageBytes      = 16 << 10
)

// receiveMessages reads the schedd's messages, no faster than the loop handles them. It
// ends with the stream: ctx is that of the handler.
func (s *grpcService) receiveMessages(ctx context.Context, recv func() (*wire.FromSchedd, error), name string,
	mail *sendQueue) error {
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
		s.loop.postEvent(ctx, func(now time.Time) {
			defer room.Release(size)
			if err := s.loop.onMessage(now, name, mail, m); err != nil {
				s.log.Warn("schedd ended", "schedd", name, "err", err)
				mail.endStream(err)
			}
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// sendWaiting sends all waiting messages.
func (s *grpcService) sendWaiting(ctx context.Context, stream scheddStream, mail *sendQueue) error {
	messages, since, ended := mail.takeAll()
	if age := timeSince(since); !since.IsZero() && age > maxUnverifiedAge {
		if err := s.confirmLeader(ctx, age); err != nil {
			return err
		}
	}
	for _, m := range messages {
		if hello := m.GetHello(); hello != nil {
			hello.Name = s.name
		}
		if m.GetGrant() != nil {
			failpoint.Point(failpoint.NegotiatorBeforeGrant)
			tasktrace.Mark(tasktrace.Planned, tasktrace.Task{})
		}
		if err := stream.Send(m); err != nil {
			return err
		}
		if m.GetGrant() != nil {
			failpoint.Point(failpoint.NegotiatorAfterGrant)
		}
	}
	return ended
}

// confirmLeader confirms that this negotiator leads before it sends old decisions.
func (s *grpcService) confirmLeader(ctx context.Context, age time.Duration) error {
	age = age.Round(time.Millisecond)
	ctx, cancel := context.WithTimeout(ctx, maxUnverifiedAge)
	defer cancel()
	if err := s.verifyLeader(ctx); err != nil {
		s.log.Warn("grants are not sent: they are late, and another negotiator may lead", "age", age, "err", err)
		return fmt.Errorf("grants of %v ago: %w: %w", age, roost.Stale, err)
	}
	s.log.Info("grants are sent late", "age", age)
	return nil
}

// timeSince returns how long ago a time was. Go's monotonic clock stops while the host is
// suspended, and the wall clock can be set. The larger value counts: too much only costs
// a query.
func timeSince(since time.Time) time.Duration {
	return max(time.Since(since), time.Now().Round(0).Sub(since.Round(0)))
}
