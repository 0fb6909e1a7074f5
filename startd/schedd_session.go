package startd

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/attack"
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/sendqueue"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/claim"
	"github.com/roost-batch/roost/startd/streams"
)

// scheddSession is one conversation with a schedd.
type scheddSession struct {
	id     uint64
	schedd string
	queue  *sendqueue.Queue[*wire.FromStartd]
	once   sync.Once
	ended  chan struct{}
	guest  guestSession
	room   *semaphore.Weighted // for the bytes that the loop has not taken in yet
}

// Bounds on what of one session waits for the loop: bytes, or one message that is longer.
// A message counts as some more than it has, so that sessions with many short ones do not
// fill the loop's inbox either.
const (
	sessionBytes = 32 << 20
	messageBytes = 128 << 10
)

func newScheddSession(schedd string) *scheddSession {
	return &scheddSession{schedd: schedd, queue: sendqueue.New[*wire.FromStartd](), ended: make(chan struct{}),
		room: semaphore.NewWeighted(sessionBytes)}
}

// closeSession ends the conversation.
func (s *scheddSession) closeSession() { s.once.Do(func() { close(s.ended) }) }

// Session holds a conversation with a schedd until it breaks or a newer one takes its
// place.
func (m *startdHost) Session(stream grpc.BidiStreamingServer[wire.ToStartd, wire.FromStartd]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	hello := first.GetHello()
	if hello.GetSchedd() == "" {
		return fmt.Errorf("session: %w: the first message is no greeting of a schedd", roost.Invalid)
	}
	if err := streams.CheckScheddIdentity(stream.Context(), hello.GetSchedd()); err != nil {
		return err
	}
	if wanted := hello.GetNode(); wanted != "" && wanted != m.config.Name {
		return fmt.Errorf("session: %w: %s is wanted, and this is %s", roost.Unauthenticated, wanted, m.config.Name)
	}
	s := newScheddSession(hello.GetSchedd())
	s.guest = guestOf(stream.Context())
	refused := make(chan error, 1)
	m.postEvent(sessionOpened{s, hello, refused})
	select {
	case err := <-refused:
		if err != nil {
			return err
		}
	case <-m.loopDone:
		return fmt.Errorf("session: %w: the startd is going away", roost.Unavailable)
	}
	defer m.postEvent(sessionClosed{s})
	go m.readMessages(stream.Context(), stream.Recv, s)
	return s.writeMessages(stream, func(message *wire.FromStartd, err error) {
		m.postEvent(sendFailure{s, message, err})
	})
}

// readMessages passes on what the schedd says, no faster than the loop takes it in.
func (m *startdHost) readMessages(ctx context.Context, recv func() (*wire.ToStartd, error), s *scheddSession) {
	defer s.closeSession()
	for {
		message, err := recv()
		if err != nil {
			return
		}
		size := min(int64(proto.Size(message))+messageBytes, sessionBytes)
		if err := s.room.Acquire(ctx, size); err != nil {
			return
		}
		select {
		case m.inbox <- scheddMessage{s, message, m.lookUpCredential(s, message), size}:
		case <-s.ended:
			return
		case <-m.loopDone:
			return
		}
	}
}

// writeMessages sends what the loop has to say. What waits goes out in one go: the
// transport flushes when it has nothing more. What cannot be sent is given back.
func (s *scheddSession) writeMessages(stream grpc.BidiStreamingServer[wire.ToStartd, wire.FromStartd],
	giveBack func(*wire.FromStartd, error)) error {
	for {
		select {
		case <-s.ended:
			return nil
		case <-stream.Context().Done():
			return nil
		case <-s.queue.Ready():
		}
		for _, message := range s.queue.Take() {
			if err := rpc.CheckDeliverable(message); err != nil && !attack.Is(attack.OversizedMessages) {
				giveBack(message, err)
				continue
			}
			if err := stream.Send(message); err != nil {
				return nil
			}
		}
	}
}

// openSession begins a session, or says why not. The welcome is the first thing said on
// it, and is built when nothing more is heard from an older one.
func (l *machineLoop) openSession(s *scheddSession, hello *wire.SessionHello) error {
	s.id = l.lastSession + 1
	if err := l.table.Connected(boottime.Now(), s.id, s.schedd, hello.GetStarted(),
		hello.GetIncarnation()); err != nil {
		return err
	}
	l.lastSession = s.id
	l.sessions[s.id] = s
	l.guests.note(s)
	l.sendWelcome(s, hello.GetParts())
	l.host.meters.ResendWindows(s.schedd)
	sendHostileSession(s)
	l.resendInputReady(s)
	l.resendHealth(s)
	for _, c := range l.table.ClaimsOf(s.schedd) {
		l.sendCommand(c, claim.ResendPendingCmd{})
	}
	return nil
}

// resendInputReady sends again which attempts wait for their input. Messages about that
// on an older session, from either side, may have been lost.
func (l *machineLoop) resendInputReady(s *scheddSession) {
	for _, c := range l.table.ClaimsOf(s.schedd) {
		h := l.runners[c.ID]
		if h == nil {
			continue
		}
		if a := h.Attempt(); a != nil && a.ID() == c.Attempt && a.MustAwaitInput() {
			s.queue.Put(&wire.FromStartd{Of: &wire.FromStartd_Input{Input: &wire.InputReady{
				Attempt: wire.FromAttempt(a.ID()), Scratch: a.ScratchDir(), Holes: true,
				InputCache: l.host.inputs != nil}}})
		}
	}
}

// sendOn puts a message on a session, if it is still there; tell, on the present one of a
// schedd.
func (l *machineLoop) sendOn(session uint64, message *wire.FromStartd) {
	if s := l.sessions[session]; s != nil {
		s.queue.Put(message)
	}
}

func (l *machineLoop) sendTo(schedd string, message *wire.FromStartd) {
	if id, ok := l.table.Session(schedd); ok {
		l.sendOn(id, message)
	}
}
