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
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/mutant"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/sendqueue"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/flock"
	"github.com/roost-batch/roost/schedd/negotiation"
	"github.com/roost-batch/roost/schedd/transfer"
)

// How soon a broken connection is tried again: at once, then at growing distances.
const (
	minSessionRetry = 20 * time.Millisecond
	maxSessionRetry = 2 * time.Second
)

// How much may wait for one node to take it: messages, and bytes. A turn of the loop must
// not say as much to any.
const (
	maxUnsent      = 100_000
	maxUnsentBytes = 256 << 20
)

// errOverfull says why a session has ended.
var errOverfull = fmt.Errorf("%w: more than %d messages or %v wait for the node to take them", roost.Exhausted,
	maxUnsent, roost.Bytes(maxUnsentBytes))

// What sessions tell the loop.
type (
	sessionOpened struct {
		node    string
		session *startdSession
		welcome *wire.SessionWelcome
	}
	sessionClosed struct {
		node    string
		session *startdSession
		err     error
	}
	startdMessage struct {
		node    string
		session *startdSession
		message *wire.FromStartd
		size    int64 // that it holds of the session's bytes
	}
)

// nodeConn is the schedd's connection to one startd, made anew whenever it breaks, until
// it is stopped.
type nodeConn struct {
	transfer.StartdNode
	address string
	conn    *grpc.ClientConn
	stop    context.CancelFunc
	stopped chan struct{}
	// the pool of a machine of another pool; nil: it is of this one
	elsewhere *flock.Host
	// of the goroutine that owns the state: the one whose welcome it has seen, nil while
	// the node is away
	session *startdSession
}

// startdSession is one conversation with a startd. A newer one ends it, and what was
// meant for the older one must not be said on the newer: it was decided before the
// comparison with what the node has. So every message is put on the session that was the
// present one when it was decided.
type startdSession struct {
	pilotOwner roost.PilotOwner // from the certificate of a pilot; zero: it is none
	out        *sendqueue.Queue[*wire.ToStartd]
	// for the bytes that the loop has not taken in yet; nil: the loop takes in each
	// message at once
	byteBudget *semaphore.Weighted
	// of the goroutine that owns the state: when the rights of its attempts to their
	// names were renewed
	rightsRenewed   bool
	rightsRenewedAt roost.BootTime
}

func newSession() *startdSession {
	return &startdSession{out: sendqueue.New[*wire.ToStartd](), byteBudget: semaphore.NewWeighted(sessionBytes)}
}

// startSession starts the upkeep of a session with a node.
func (s *Schedd) startSession(ctx context.Context, name, address string) *nodeConn {
	ctx, stop := context.WithCancel(ctx)
	p := &nodeConn{StartdNode: transfer.StartdNode{Name: name}, address: address, stop: stop,
		stopped: make(chan struct{})}
	host, at := negotiation.ParseLocation(name, address)
	identity, elsewhere, err := identityFor(s, name)
	var conn *grpc.ClientConn
	if err == nil {
		conn, err = rpc.DialNode(at, identity, peer.Startd, host)
	}
	if err != nil {
		s.log.Error("cannot reach node", "node", name, "error", err)
		stop()
		close(p.stopped)
		return p
	}
	p.conn, p.Client, p.elsewhere = conn, wire.NewStartdClient(conn), elsewhere
	if elsewhere != nil {
		p.Client = flock.StartdClient{StartdClient: p.Client, Schedd: elsewhere.Schedd}
	}
	go func() {
		defer close(p.stopped)
		defer conn.Close()
		s.runSessions(ctx, p)
	}()
	return p
}

// runSessions holds one session after the other.
func (s *Schedd) runSessions(ctx context.Context, p *nodeConn) {
	wait := minSessionRetry
	var ends sessionEndLog
	for ctx.Err() == nil {
		began := time.Now()
		err := rpc.FromStatus(s.runSession(ctx, p))
		if ctx.Err() != nil {
			return
		}
		ends.logEnd(s.log, p.Name, err)
		if time.Since(began) > maxSessionRetry {
			wait = minSessionRetry
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, maxSessionRetry)
	}
}

// runSession opens a session and serves it until it breaks.
func (s *Schedd) runSession(ctx context.Context, p *nodeConn) error {
	ctx, end := context.WithCancelCause(ctx)
	cancel := func() { end(context.Canceled) }
	defer cancel()
	stream, err := p.Client.Session(ctx, grpc.WaitForReady(true))
	if err != nil {
		return err
	}
	hello := s.greetingMessage(p.Name)
	wanted, _ := flock.ParseMachine(p.Name)
	if p.elsewhere != nil {
		hello.Schedd, hello.Address, hello.Node = p.elsewhere.Schedd, "", wanted
	}
	if err := stream.Send(&wire.ToStartd{Of: &wire.ToStartd_Hello{Hello: hello}}); err != nil {
		return err
	}
	welcome, err := receiveWelcome(p.Name, stream.Recv)
	if err != nil {
		return err
	}
	if err := checkWelcome(wanted, welcome); err != nil {
		return err
	}
	now := newSession()
	now.pilotOwner = pilotOwnerOf(stream.Context())
	now.out.Limit(maxUnsent, maxUnsentBytes, func(m *wire.ToStartd) int {
		return proto.Size(m)
	}, func() { end(errOverfull) })
	attackSession(ctx, p, now.out)
	s.postEvent(ctx, sessionOpened{p.Name, now, welcome})
	writer := make(chan struct{})
	go func() {
		defer close(writer)
		defer cancel()
		host, _ := negotiation.ParseLocation(p.Name, p.address)
		send := func(m *wire.ToStartd) error { return sendToNode(s.log, p.Name, m, sendInTime(end, stream.Send)) }
		if p.elsewhere == nil { // other pools have no use for signatures of this one
			send = s.transfers.SignNameRights(host, s.transfers.SignImageRights(p.Name, send))
		}
		now.out.SendEach(ctx, send)
	}()
	err = s.receiveFromStartd(ctx, p.Name, now, stream.Recv)
	if untaken, ok := errors.AsType[sendTimeoutError](context.Cause(ctx)); ok {
		err = untaken
	} else if errors.Is(context.Cause(ctx), errOverfull) {
		err = errOverfull
	}
	cancel()
	<-writer
	s.postEvent(s.daemonContext, sessionClosed{p.Name, now, err})
	return err
}

// pilotOwnerOf returns whose tasks a machine runs, if it is a pilot: its certificate says
// so, whatever its ad does.
func pilotOwnerOf(ctx context.Context) roost.PilotOwner {
	p, ok := peer.FromContext(ctx)
	if !ok || p.Local || !p.Plays(peer.Pilot) || p.Plays(peer.Startd) {
		return roost.PilotOwner{}
	}
	owner, err := roost.ParsePilotOwner(p.Owner)
	if err != nil { // it runs nobody's
		return roost.PilotOwner{User: "\x00"}
	}
	return owner
}

// refusesOwner returns why a user's tasks are not sent to the machine of a session, ""
// where they are.
func (c *startdSession) refusesOwner(user, schedd string) string {
	if c == nil || c.pilotOwner == (roost.PilotOwner{}) || c.pilotOwner.Admits(user, schedd) {
		return ""
	}
	return "it is a pilot of " + c.pilotOwner.String()
}

// greetingMessage is the first message of a session.
func (s *Schedd) greetingMessage(machine string) *wire.SessionHello {
	h := &wire.SessionHello{Schedd: attackName(s.node.Name), Address: s.node.Schedd.Socket,
		Started: s.started.UnixNano(), Incarnation: s.nextIncarnation(), Node: machine, Parts: true}
	if s.replicated != nil { // the clocks of its members may differ
		h.Started = 0
	}
	if mutant.Active(mutant.NodeNotVerified) {
		h.Node = ""
	}
	return h
}

// receiveFromStartd brings what a node says to the loop, until the session breaks. A node
// that says more than the loop takes in waits.
func (s *Schedd) receiveFromStartd(ctx context.Context, name string, now *startdSession,
	recv func() (*wire.FromStartd, error)) error {
	for {
		m, err := recv()
		if err != nil {
			return err
		}
		size := min(int64(proto.Size(m)), sessionBytes)
		if err := now.byteBudget.Acquire(ctx, size); err != nil {
			return err
		}
		if !s.postEvent(ctx, startdMessage{name, now, m, size}) {
			return ctx.Err()
		}
	}
}
