package streams

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protodelim"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/claim"
)

// A job of several chunks starts processes on its other machines by way of its schedd,
// which knows them all (pbsdsh):
//
//	pbsdsh ── socket ──▶ startd ── session: come, ticket ──▶ schedd ── Shell, of the job ──▶ startds of all its chunks
//	                       ▲                                   │
//	                       └─────────── Reach, ticket ─────────┘
//
// The socket lies in the directory of the attempt's streams, which no other task sees;
// only its user may open it, and the kernel says who has. What comes by it is for the
// gang of this attempt, whatever it says: no job reaches another's machines.

const (
	// calls of an attempt at a time: a launcher of MPI has one for each machine as long
	// as its program runs
	maxSpawnRequests = 512
	spawnTimeout     = 15 * time.Second
	spawnFrameSize   = maxCommand + 512<<10 // bytes of a call, with the nodes of its lines
)

// OpenSpawnSocket listens for processes of an attempt until it ends.
func (m *Server) OpenSpawnSocket(a *claim.Attempt) error {
	for name, serve := range map[string]func(*claim.Attempt, *net.UnixConn) error{
		claim.SpawnSocketName: m.serveSpawnRequest, claim.RanksSocketName: m.serveRanks,
	} {
		if err := m.openJobSocket(a, name, serve); err != nil {
			return err
		}
	}
	return nil
}

// openJobSocket listens on a socket for processes of an attempt.
func (m *Server) openJobSocket(a *claim.Attempt, name string,
	serve func(*claim.Attempt, *net.UnixConn) error) error {
	dir, err := os.Open(a.IODir())
	if err != nil {
		return err
	}
	defer dir.Close()
	_ = os.Remove(filepath.Join(a.IODir(), name)) // a startd before this one may have left it
	// the path itself may be longer than an address can be
	name = fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return fmt.Errorf("socket of the job: %w", err)
	}
	l.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(name, 0o600), os.Chown(name, int(a.Credential().UID),
		int(a.Credential().GID))); err != nil &&
		os.Geteuid() == 0 {
		l.Close()
		return fmt.Errorf("socket of the job: %w", err)
	}
	go func() {
		select {
		case <-a.Ended():
		case <-a.FilesClosed():
		case <-m.loop.Done():
		}
		l.Close()
	}()
	go m.acceptSpawnRequests(a, l, serve)
	return nil
}

func (m *Server) acceptSpawnRequests(a *claim.Attempt, l *net.UnixListener,
	serve func(*claim.Attempt, *net.UnixConn) error) {
	slots := make(chan struct{}, maxSpawnRequests)
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return
		}
		select {
		case slots <- struct{}{}:
			go func() {
				defer func() { <-slots }()
				defer conn.Close()
				if err := serve(a, conn); err != nil {
					_, _ = protodelim.MarshalTo(conn, &wire.ReachOutput{Error: err.Error()})
				}
			}()
		default:
			_, _ = protodelim.MarshalTo(conn,
				&wire.ReachOutput{Error: fmt.Sprintf("%d calls are under way already", maxSpawnRequests)})
			conn.Close()
		}
	}
}

// spawnRequest is a call that waits for its schedd.
type spawnRequest struct {
	attempt    roost.AttemptID
	call       *wire.ReachCall
	ranks      net.Conn // of a task's ranks; then there is no call
	output     chan *wire.ReachOutput
	input      chan *wire.ReachCall // what the caller sends for standard input
	callerGone chan struct{}        // closed when the caller has gone
	scheddCame chan struct{}        // closed when the schedd has come
}

// spawnRequests are those of a machine, by ticket.
type spawnRequests struct {
	mu         sync.Mutex
	lastTicket uint64
	byTicket   map[uint64]*spawnRequest
}

func (r *spawnRequests) put(c *spawnRequest) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byTicket == nil {
		r.byTicket = map[uint64]*spawnRequest{}
	}
	r.lastTicket++
	r.byTicket[r.lastTicket] = c
	return r.lastTicket
}

// take returns the call of a ticket, once, and only to a caller that may have it. A
// guess by another must not use it up.
func (r *spawnRequests) take(ticket uint64, may func(*spawnRequest) error) (*spawnRequest, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.byTicket[ticket]
	if c == nil {
		return nil, fmt.Errorf("ticket %d: %w: its caller has gone", ticket, roost.NotFound)
	}
	if err := may(c); err != nil {
		return nil, err
	}
	delete(r.byTicket, ticket)
	return c, nil
}

// drop takes a ticket back.
func (r *spawnRequests) drop(ticket uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byTicket, ticket)
}

// serveSpawnRequest hears what a process wants, has the schedd come, and passes on what
// comes of it.
func (m *Server) serveSpawnRequest(a *claim.Attempt, conn *net.UnixConn) error {
	if err := verifyCaller(a, conn); err != nil {
		return err
	}
	call := &wire.ReachCall{}
	_ = conn.SetReadDeadline(time.Now().Add(spawnTimeout))
	in := bufio.NewReader(conn)
	if err := (protodelim.UnmarshalOptions{MaxSize: spawnFrameSize}).UnmarshalFrom(in, call); err != nil {
		return fmt.Errorf("%w: that is no call: %w", roost.Invalid, err)
	}
	_ = conn.SetReadDeadline(time.Time{})
	r := &spawnRequest{attempt: a.ID(), call: call, output: make(chan *wire.ReachOutput),
		input: make(chan *wire.ReachCall), callerGone: make(chan struct{}), scheddCame: make(chan struct{})}
	over := make(chan struct{})
	defer close(over)
	go r.readInput(in, over)
	ticket := m.spawnRequests.put(r)
	defer m.spawnRequests.drop(ticket)
	m.loop.SendTo(a.ID().Task.Job.Host, &wire.FromStartd{
		Of: &wire.FromStartd_Reach{Reach: &wire.ReachWanted{Attempt: wire.FromAttempt(a.ID()), Ticket: ticket}},
	})
	select {
	case <-r.scheddCame:
	case <-time.After(spawnTimeout):
		return fmt.Errorf("%w: the node %s, in whose queue the job is, does not answer", roost.Unavailable,
			a.ID().Task.Job.Host)
	case <-a.Ended():
		return taskEndedError(a)
	case <-r.callerGone:
		return nil
	case <-m.loop.Done():
		return nil
	}
	for out := range r.output {
		if _, err := protodelim.MarshalTo(conn, out); err != nil {
			break
		}
	}
	conn.Close() // who waits for its end is let go
	for range r.output {
	}
	return nil
}

// readInput passes on what the caller sends after its call, until the caller has gone. It
// does so no faster than it is taken. Only an interactive call has input.
func (r *spawnRequest) readInput(in *bufio.Reader, over <-chan struct{}) {
	defer close(r.callerGone)
	if !r.call.GetInteractive() {
		_, _ = in.ReadByte() // nothing more comes but the end
		return
	}
	for {
		m := &wire.ReachCall{}
		if err := (protodelim.UnmarshalOptions{MaxSize: maxInput + 1024}).UnmarshalFrom(in, m); err != nil {
			return
		}
		select {
		case r.input <- &wire.ReachCall{Place: m.GetPlace(), Data: m.GetData(), Eof: m.GetEof()}:
		case <-over:
			return
		}
	}
}

// verifyCaller looks who is at the other end.
func verifyCaller(a *claim.Attempt, conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	if cerr := raw.Control(func(fd uintptr) {
		peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); cerr != nil || err != nil {
		return errors.Join(cerr, err)
	}
	if peer.Uid != a.Credential().UID {
		return fmt.Errorf("%w: you are not the user of the job", roost.PermissionDenied)
	}
	return nil
}

// Reach gives a schedd the call that it was told of, and its caller what the schedd says
// of it.
func (m *Server) Reach(stream grpc.BidiStreamingServer[wire.ReachOutput, wire.ReachCall]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	r, err := m.spawnRequests.take(first.GetTicket(), func(r *spawnRequest) error {
		return CheckScheddIdentity(stream.Context(), r.attempt.Task.Job.Host)
	})
	if err != nil {
		return err
	}
	close(r.scheddCame)
	if r.ranks != nil {
		return r.relayRanks(stream)
	}
	if err = stream.Send(r.call); err != nil {
		close(r.output)
		return err
	}
	ended := make(chan error, 1)
	go func() {
		defer close(r.output)
		ended <- r.relayReplies(stream)
	}()
	for {
		select {
		case err := <-ended:
			return err
		case in := <-r.input:
			if err := stream.Send(in); err != nil && !errors.Is(err, io.EOF) {
				return err
			}
		case <-r.callerGone:
			return nil
		}
	}
}

// relayReplies passes on what the schedd says, no faster than it is taken, until that
// ends.
func (r *spawnRequest) relayReplies(stream grpc.BidiStreamingServer[wire.ReachOutput, wire.ReachCall]) error {
	for {
		out, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case r.output <- out:
		case <-r.callerGone:
			return nil
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}
