package starter

import (
	"errors"
	"fmt"
	"math"
	"net"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/startd/starter/proto"
)

// The words of package proto, for callers of this one.
type (
	Attempt = proto.Attempt
	Order   = proto.Order
	Exit    = proto.Exit
	State   = proto.State
	Stop    = proto.Stop
)

// Captured stands in Order.Stdout and Order.Stderr for a file in the attempt's directory, Order.IO, which CapturedPath names.
const Captured = proto.Captured

// ErrGone says that a starter is dead. It is a roost.Finished.
var ErrGone = fmt.Errorf("starter is gone: %w", roost.Finished)

// Event is what happened to a starter. It is one of Started, Exited and Gone.
type Event interface{ event() }

// Started says that a task's first process runs.
type Started struct {
	Attempt Attempt
	PID     int
}

// Exited says that a task has ended, or could not be started: then Exit.Step is set. Nothing it had forked is left. It is told again
// after each reconnection until Forget.
type Exited struct {
	Attempt Attempt
	Exit    Exit
}

// Gone says that the starter itself is dead; no event follows. With an Err that is roost.Stale it is not dead: a newer connection has taken
// this one's place, or this one did not read; Adopt finds it again. Last is the truth that its journal still holds: a task that was running
// then is being killed by the kernel, and Sweep finds what it has forked.
type Gone struct {
	Last State
	Err  error
}

func (Started) event() {}
func (Exited) event()  {}
func (Gone) event()    {}

// Starter is the connection to one starter. Its methods send and do not wait; answers come as events. They may be called by several
// goroutines.
type Starter struct {
	dir     string
	conn    *net.UnixConn
	handle  func(Event)
	child   int // its pid when it is a child of ours, else 0
	pidfd   int // of the starter, or -1; the reading goroutine's
	ready   chan struct{}
	done    chan struct{} // closed when the reading goroutine has ended
	mu      sync.Mutex
	pending []byte // what the write under way will not carry
	writing bool
	closed  bool
	hello   State // set before ready is closed
}

// CapturedPath names the file with what an attempt wrote to stdout or stderr, if Order asked to have it captured.
func CapturedPath(io string, stderr bool) string {
	return filepath.Join(io, proto.CapturedName(stderr))
}

// Start runs a task. Started follows, then Exited; or Exited alone.
func (s *Starter) Start(o Order) error {
	if o.WalltimeReason == "" && o.Walltime > 0 {
		o.WalltimeReason = fmt.Sprintf("walltime of %v exceeded", time.Duration(o.Walltime))
	}
	return s.send(&proto.Message{Type: proto.TypeStart, Order: o})
}

// Vacate ends a task: SIGTERM to all its processes and after the notice SIGKILL, or SIGKILL at once. For another attempt than the one
// that runs it does nothing.
func (s *Starter) Vacate(stop Stop) error {
	return s.send(&proto.Message{Type: proto.TypeStop, Stop: stop})
}

// Signal sends a signal to the program of a task, and to nothing that it has started.
func (s *Starter) Signal(a Attempt, signal unix.Signal) error {
	return s.send(&proto.Message{Type: proto.TypeSignal, Kick: proto.Kick{Attempt: a, Signal: uint32(signal)}})
}

// SignalAll sends a signal to all processes of a task.
func (s *Starter) SignalAll(a Attempt, signal unix.Signal) error {
	return s.send(&proto.Message{Type: proto.TypeSignal, Kick: proto.Kick{Attempt: a, Signal: uint32(signal), All: true}})
}

// Suspend stops all processes of a task with SIGSTOP.
func (s *Starter) Suspend(a Attempt) error {
	return s.send(&proto.Message{Type: proto.TypeSuspend, Attempt: a})
}

// Stood says that they have been stopped by their group. The starter only stops the walltime: it may get to it late, when a checkpoint has the group thawed
// that froze it.
func (s *Starter) Stood(a Attempt) error {
	return s.send(&proto.Message{Type: proto.TypeSuspend, Attempt: a, On: true})
}

// Resume lets them go on.
func (s *Starter) Resume(a Attempt) error {
	return s.send(&proto.Message{Type: proto.TypeResume, Attempt: a})
}

// Limit gives a task another walltime than it was started with, and the sentence for when that is over; 0: none. What it has stood still counts for neither.
func (s *Starter) Limit(a Attempt, walltime time.Duration, reason string) error {
	return s.send(&proto.Message{Type: proto.TypeLimit, Attempt: a, Order: proto.Order{Walltime: int64(walltime), WalltimeReason: reason}})
}

// Hold stops whatever the starter runs, or lets it go on if it is not suspended besides. Where tasks have a group, that is who calls it to see to: then
// it only says that walltimes stand still.
func (s *Starter) Hold(on bool) error {
	return s.send(&proto.Message{Type: proto.TypeHold, On: on})
}

// Renew sets the lease to end so long from now, whenever the starter comes to read that.
func (s *Starter) Renew(lease time.Duration) error {
	m := &proto.Message{Type: proto.TypeRenew, Lease: int64(lease)}
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) == nil && m.Lease <= math.MaxInt64-t.Nano() {
		m.Until = max(t.Nano()+m.Lease, 1)
	}
	return s.send(m)
}

// Forget drops an ended attempt, and makes the starter idle.
func (s *Starter) Forget(a Attempt) error {
	return s.send(&proto.Message{Type: proto.TypeForget, Attempt: a})
}

// Release ends the starter once it is idle; a running task is killed, as removed. Gone follows.
func (s *Starter) Release() error {
	return s.send(&proto.Message{Type: proto.TypeRelease})
}

// PID is the starter's own process; 0 before it has said hello to an adopter.
func (s *Starter) PID() int {
	if s.child != 0 {
		return s.child
	}
	select {
	case <-s.ready:
		return int(s.hello.Starter)
	default:
		return 0
	}
}

// Dir is the claim's directory.
func (s *Starter) Dir() string { return s.dir }

// Close drops the connection and waits until no event handler runs any more; it may not be called from one. The starter lives on.
func (s *Starter) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	err := s.conn.Close()
	<-s.done
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// send writes a frame. Frames that arrive while another goroutine writes travel with that one's next write, so that no lock spans it.
func (s *Starter) send(m *proto.Message) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrGone
	}
	s.pending = proto.Append(s.pending, m)
	if s.writing {
		s.mu.Unlock()
		return nil
	}
	s.writing = true
	for len(s.pending) > 0 {
		batch := s.pending
		s.pending = nil
		s.mu.Unlock()
		_, err := s.conn.Write(batch)
		s.mu.Lock()
		if err != nil {
			s.writing, s.closed = false, true
			s.mu.Unlock()
			return fmt.Errorf("starter in %s: %w", s.dir, ErrGone)
		}
	}
	s.writing = false
	s.mu.Unlock()
	return nil
}
