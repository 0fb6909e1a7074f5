package schedd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/auth"
	"github.com/roost-batch/roost/internal/plant"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// How soon a broken connection is tried again: at once, then at growing distances.
const (
	firstRetry = 20 * time.Millisecond
	lastRetry  = 2 * time.Second
)

// How much may wait for one node to take it: messages, and bytes. A turn of the loop must not say as much to any.
const (
	maxUnsent      = 100_000
	maxUnsentBytes = 256 << 20
)

// errOverfull says why a session has ended.
var errOverfull = fmt.Errorf("%w: more than %d messages or %v wait for the node to take them", roost.Exhausted, maxUnsent, roost.Bytes(maxUnsentBytes))

// What sessions tell the loop.
type (
	sessionUp struct {
		node    string
		session *session
		welcome *wire.SessionWelcome
	}
	sessionDown struct {
		node    string
		session *session
		err     error
	}
	sessionNews struct {
		node    string
		session *session
		message *wire.FromStartd
		size    int64 // that it holds of the session's bytes
	}
)

// peerNode is the schedd's connection to one startd, made anew whenever it breaks, until it is stopped.
type peerNode struct {
	name, address string
	conn          *grpc.ClientConn
	client        wire.StartdClient
	stop          context.CancelFunc
	done          chan struct{}
	session       *session // of the goroutine that owns the state: the one whose welcome it has seen, nil while the node is away
}

// session is one conversation with a startd. A newer one ends it, and what was meant for the older one must not be said on the newer: it was
// decided before the comparison with what the node has. So every message is put on the session that was the present one when it was decided.
type session struct {
	out  *outbox[*wire.ToStartd]
	room *semaphore.Weighted // for the bytes that the loop has not taken in yet; nil: the loop takes in each message at once
}

func newSession() *session {
	return &session{out: newOutbox[*wire.ToStartd](), room: semaphore.NewWeighted(sessionBytes)}
}

// connect starts the upkeep of a session with a node.
func (s *Schedd) connect(ctx context.Context, name, address string) *peerNode {
	ctx, stop := context.WithCancel(ctx)
	p := &peerNode{name: name, address: address, stop: stop, done: make(chan struct{})}
	host, at := location(name, address)
	conn, err := rpc.DialNode(at, s.identity, auth.Startd, host)
	if err != nil {
		s.log.Error("cannot reach node", "node", name, "error", err)
		stop()
		close(p.done)
		return p
	}
	p.conn, p.client = conn, wire.NewStartdClient(conn)
	go func() {
		defer close(p.done)
		defer conn.Close()
		s.keepSession(ctx, p)
	}()
	return p
}

// keepSession holds one session after the other.
func (s *Schedd) keepSession(ctx context.Context, p *peerNode) {
	wait := firstRetry
	var ends sessionEnds
	for ctx.Err() == nil {
		began := time.Now()
		err := rpc.FromStatus(s.holdSession(ctx, p))
		if ctx.Err() != nil {
			return
		}
		ends.tell(s.log, p.name, err)
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

// holdSession opens a session and serves it until it breaks.
func (s *Schedd) holdSession(ctx context.Context, p *peerNode) error {
	ctx, end := context.WithCancelCause(ctx)
	cancel := func() { end(context.Canceled) }
	defer cancel()
	stream, err := p.client.Session(ctx, grpc.WaitForReady(true))
	if err != nil {
		return err
	}
	hello := s.greeting(p.name)
	if err := stream.Send(&wire.ToStartd{Of: &wire.ToStartd_Hello{Hello: hello}}); err != nil {
		return err
	}
	welcome, err := receiveWelcome(p.name, stream.Recv)
	if err != nil {
		return err
	}
	if err := welcomed(p.name, welcome); err != nil {
		return err
	}
	now := newSession()
	now.out.bound(maxUnsent, maxUnsentBytes, func(m *wire.ToStartd) int { return proto.Size(m) }, func() { end(errOverfull) })
	s.attackSession(ctx, p, now.out)
	s.post(ctx, sessionUp{p.name, now, welcome})
	writer := make(chan struct{})
	go func() {
		defer close(writer)
		defer cancel()
		now.out.pump(ctx, s.signing(p.name, func(m *wire.ToStartd) error { return s.deliver(p.name, m, sendInTime(end, stream.Send)) }))
	}()
	err = s.readSession(ctx, p.name, now, stream.Recv)
	if untaken, ok := errors.AsType[untakenError](context.Cause(ctx)); ok {
		err = untaken
	} else if errors.Is(context.Cause(ctx), errOverfull) {
		err = errOverfull
	}
	cancel()
	<-writer
	s.post(s.life, sessionDown{p.name, now, err})
	return err
}

// greeting is the first message of a session.
func (s *Schedd) greeting(machine string) *wire.SessionHello {
	h := &wire.SessionHello{Schedd: attackName(s.node.Name), Address: s.node.Schedd.Socket, Started: s.started.UnixNano(), Incarnation: s.nextIncarnation(), Node: machine, Parts: true}
	if plant.Is(plant.AnyNode) {
		h.Node = ""
	}
	return h
}

// readSession brings what a node says to the loop, until the session breaks. A node that says more than the loop takes in waits.
func (s *Schedd) readSession(ctx context.Context, name string, now *session, recv func() (*wire.FromStartd, error)) error {
	for {
		m, err := recv()
		if err != nil {
			return err
		}
		size := min(int64(proto.Size(m)), sessionBytes)
		if err := now.room.Acquire(ctx, size); err != nil {
			return err
		}
		if !s.post(ctx, sessionNews{name, now, m, size}) {
			return ctx.Err()
		}
	}
}
