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
	"github.com/roost-batch/roost/internal/auth"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// session is one conversation with a schedd.
type session struct {
	id     uint64
	schedd string
	out    *mailbox[*wire.FromStartd]
	once   sync.Once
	ended  chan struct{}
	room   *semaphore.Weighted // for the bytes that the loop has not taken in yet
}

// Bounds on what of one session waits for the loop: bytes, or one message that is longer. A message counts as some more than it has, so that sessions
// with many short ones do not fill the loop's inbox either.
const (
	sessionBytes = 32 << 20
	messageBytes = 128 << 10
)

func newSession(schedd string) *session {
	return &session{schedd: schedd, out: newMailbox[*wire.FromStartd](), ended: make(chan struct{}), room: semaphore.NewWeighted(sessionBytes)}
}

// hang ends the conversation.
func (s *session) hang() { s.once.Do(func() { close(s.ended) }) }

// Session holds a conversation with a schedd until it breaks or a newer one takes its place.
func (m *machine) Session(stream grpc.BidiStreamingServer[wire.ToStartd, wire.FromStartd]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	hello := first.GetHello()
	if hello.GetSchedd() == "" {
		return fmt.Errorf("session: %w: the first message is no greeting of a schedd", roost.Invalid)
	}
	if err := speaksFor(stream.Context(), hello.GetSchedd()); err != nil {
		return err
	}
	if wanted := hello.GetNode(); wanted != "" && wanted != m.own.Name {
		return fmt.Errorf("session: %w: %s is wanted, and this is %s", roost.Unauthenticated, wanted, m.own.Name)
	}
	s := newSession(hello.GetSchedd())
	refused := make(chan error, 1)
	m.post(opened{s, hello, refused})
	select {
	case err := <-refused:
		if err != nil {
			return err
		}
	case <-m.stopped:
		return fmt.Errorf("session: %w: the startd is going away", roost.Unavailable)
	}
	defer m.post(closed{s})
	go m.read(stream.Context(), stream.Recv, s)
	return s.write(stream, func(message *wire.FromStartd, err error) { m.post(sendFailure{s, message, err}) })
}

// speaksFor checks that a peer may act for that schedd: over the network it is what its certificate says. Local daemons are told apart by nothing
// but their user.
func speaksFor(ctx context.Context, schedd string) error {
	if p, ok := auth.FromContext(ctx); !ok || !p.Local && p.Name != schedd {
		return fmt.Errorf("schedd %s: %w: %s may not speak for it", schedd, roost.PermissionDenied, p.Name)
	}
	return nil
}

// read passes on what the schedd says, no faster than the loop takes it in.
func (m *machine) read(ctx context.Context, recv func() (*wire.ToStartd, error), s *session) {
	defer s.hang()
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
		case m.inbox <- heard{s, message, m.claimantRights(s.schedd, message), size}:
		case <-s.ended:
			return
		case <-m.stopped:
			return
		}
	}
}

// write sends what the loop has to say. What waits goes out in one go: the transport flushes when it has nothing more. What cannot be sent is given back.
func (s *session) write(stream grpc.BidiStreamingServer[wire.ToStartd, wire.FromStartd], giveBack func(*wire.FromStartd, error)) error {
	for {
		select {
		case <-s.ended:
			return nil
		case <-stream.Context().Done():
			return nil
		case <-s.out.ready:
		}
		for _, message := range s.out.take() {
			if err := rpc.Deliverable(message); err != nil && !attack.Is(attack.LongMessages) {
				giveBack(message, err)
				continue
			}
			if err := stream.Send(message); err != nil {
				return nil
			}
		}
	}
}

// open begins a session, or says why not. The welcome is the first thing said on it, and is built when nothing more is heard from an older one.
func (l *loop) open(s *session, hello *wire.SessionHello) error {
	s.id = l.last + 1
	if err := l.core.Connected(boottime(), s.id, s.schedd, hello.GetStarted(), hello.GetIncarnation()); err != nil {
		return err
	}
	l.last = s.id
	l.sessions[s.id] = s
	l.welcome(s, hello.GetParts())
	attackSession(s)
	l.awaitInput(s)
	for _, c := range l.core.Of(s.schedd) {
		l.order(c, retell{})
	}
	return nil
}

// awaitInput says again which attempts wait for their input: what was said of it on an older session, by either side, may have been lost.
func (l *loop) awaitInput(s *session) {
	for _, c := range l.core.Of(s.schedd) {
		h := l.hands[c.ID]
		if h == nil {
			continue
		}
		if a := h.present.Load(); a != nil && a.id == c.Attempt && a.holds && a.waits() {
			s.out.put(&wire.FromStartd{Of: &wire.FromStartd_Input{Input: &wire.InputReady{Attempt: reference(a.id), Scratch: a.record.Scratch, Holes: true}}})
		}
	}
}

// say puts a message on a session, if it is still there; tell, on the present one of a schedd.
func (l *loop) say(session uint64, message *wire.FromStartd) {
	if s := l.sessions[session]; s != nil {
		s.out.put(message)
	}
}

func (l *loop) tell(schedd string, message *wire.FromStartd) {
	if id, ok := l.core.Session(schedd); ok {
		l.say(id, message)
	}
}
