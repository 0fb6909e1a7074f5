package startd

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
)

// A job of several chunks starts processes on its other machines by way of its schedd, which knows them all (pbsdsh):
//
//	pbsdsh ── socket ──▶ startd ── session: come, ticket ──▶ schedd ── Shell, of the job ──▶ startds of all its chunks
//	                       ▲                                   │
//	                       └─────────── Reach, ticket ─────────┘
//
// The socket lies in the directory of the attempt's streams, which no other task sees; only its user may open it, and the kernel says who has. What comes by
// it is for the gang of this attempt, whatever it says: no job reaches another's machines.

const (
	reachName    = "reach" // of the socket
	maxReaches   = 512     // calls of an attempt at a time: a launcher of MPI has one for each machine as long as its program runs
	reachPatient = 15 * time.Second
	reachFrame   = maxCommand + 64<<10 // bytes of a call
)

// openReach listens for processes of an attempt.
func (m *machine) openReach(a *attempt) error {
	dir, err := os.Open(a.record.IO)
	if err != nil {
		return err
	}
	defer dir.Close()
	_ = os.Remove(filepath.Join(a.record.IO, reachName))            // a startd before this one may have left it
	name := fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), reachName) // the path itself may be longer than an address can be
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return fmt.Errorf("socket of the job: %w", err)
	}
	l.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(name, 0o600), os.Chown(name, int(a.cred.UID), int(a.cred.GID))); err != nil && os.Geteuid() == 0 {
		l.Close()
		return fmt.Errorf("socket of the job: %w", err)
	}
	go func() {
		select {
		case <-a.over:
		case <-a.ctx.Done():
		case <-m.stopped:
		}
		l.Close()
	}()
	go m.acceptReaches(a, l)
	return nil
}

// reopenReach listens again for an attempt that an earlier start has begun.
func (h *hand) reopenReach(a *attempt) {
	if !a.record.Reaches {
		return
	}
	if err := h.m.openReach(a); err != nil {
		h.m.log.Error("a job cannot reach its other machines", "attempt", a.label(), "err", err)
	}
}

func (m *machine) acceptReaches(a *attempt, l *net.UnixListener) {
	slots := make(chan struct{}, maxReaches)
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
				if err := m.reachFor(a, conn); err != nil {
					_, _ = protodelim.MarshalTo(conn, &wire.ReachOutput{Error: err.Error()})
				}
			}()
		default:
			_, _ = protodelim.MarshalTo(conn, &wire.ReachOutput{Error: fmt.Sprintf("%d calls are under way already", maxReaches)})
			conn.Close()
		}
	}
}

// reach is a call that waits for its schedd.
type reach struct {
	attempt roost.AttemptID
	call    *wire.ReachCall
	output  chan *wire.ReachOutput
	gone    chan struct{} // closed when the caller has gone
	taken   chan struct{} // closed when the schedd has come
}

// reaches are those of a machine, by ticket.
type reaches struct {
	mu   sync.Mutex
	last uint64
	open map[uint64]*reach
}

func (r *reaches) put(c *reach) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		r.open = map[uint64]*reach{}
	}
	r.last++
	r.open[r.last] = c
	return r.last
}

// take returns the call of a ticket, once, and to whoever may have the call alone: a guess by another must not use it up.
func (r *reaches) take(ticket uint64, may func(*reach) error) (*reach, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.open[ticket]
	if c == nil {
		return nil, fmt.Errorf("ticket %d: %w: its caller has gone", ticket, roost.NotFound)
	}
	if err := may(c); err != nil {
		return nil, err
	}
	delete(r.open, ticket)
	return c, nil
}

// drop takes a ticket back.
func (r *reaches) drop(ticket uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, ticket)
}

// reachFor hears what a process wants, has the schedd come, and passes on what comes of it.
func (m *machine) reachFor(a *attempt, conn *net.UnixConn) error {
	if err := ownProcess(a, conn); err != nil {
		return err
	}
	call := &wire.ReachCall{}
	_ = conn.SetReadDeadline(time.Now().Add(reachPatient))
	in := bufio.NewReader(conn)
	if err := (protodelim.UnmarshalOptions{MaxSize: reachFrame}).UnmarshalFrom(in, call); err != nil {
		return fmt.Errorf("%w: that is no call: %w", roost.Invalid, err)
	}
	_ = conn.SetReadDeadline(time.Time{})
	r := &reach{attempt: a.id, call: call, output: make(chan *wire.ReachOutput), gone: make(chan struct{}), taken: make(chan struct{})}
	go func() {
		_, _ = in.ReadByte() // nothing more comes but the end
		close(r.gone)
	}()
	ticket := m.reaches.put(r)
	defer m.reaches.drop(ticket)
	q := question{func(l *loop) {
		l.tell(a.id.Task.Job.Host, &wire.FromStartd{Of: &wire.FromStartd_Reach{Reach: &wire.ReachWanted{Attempt: reference(a.id), Ticket: ticket}}})
	}, make(chan struct{})}
	m.post(q)
	select {
	case <-r.taken:
	case <-time.After(reachPatient):
		return fmt.Errorf("%w: the node %s, in whose queue the job is, does not answer", roost.Unavailable, a.id.Task.Job.Host)
	case <-a.over:
		return taskEnded(a)
	case <-r.gone:
		return nil
	case <-m.stopped:
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

// ownProcess looks who is at the other end.
func ownProcess(a *attempt, conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	if cerr := raw.Control(func(fd uintptr) { peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); cerr != nil || err != nil {
		return errors.Join(cerr, err)
	}
	if peer.Uid != a.cred.UID {
		return fmt.Errorf("%w: you are not the user of the job", roost.PermissionDenied)
	}
	return nil
}

// Reach gives a schedd the call that it was told of, and its caller what the schedd says of it.
func (m *machine) Reach(stream grpc.BidiStreamingServer[wire.ReachOutput, wire.ReachCall]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	r, err := m.reaches.take(first.GetTicket(), func(r *reach) error { return speaksFor(stream.Context(), r.attempt.Task.Job.Host) })
	if err != nil {
		return err
	}
	close(r.taken)
	if err = stream.Send(r.call); err != nil {
		close(r.output)
		return err
	}
	ended := make(chan error, 1)
	go func() {
		defer close(r.output)
		ended <- r.hear(stream)
	}()
	select {
	case err := <-ended:
		return err
	case <-r.gone:
		return nil
	}
}

// hear passes on what the schedd says, no faster than it is taken, until it has said all, or the conversation ends.
func (r *reach) hear(stream grpc.BidiStreamingServer[wire.ReachOutput, wire.ReachCall]) error {
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
		case <-r.gone:
			return nil
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}
