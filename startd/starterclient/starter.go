package starterclient

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
	TaskAttempt  = proto.TaskAttempt
	StartCmd     = proto.StartCmd
	TaskExit     = proto.TaskExit
	ProcessState = proto.StarterState
	StopCmd      = proto.StopCmd
)

// Captured stands in StartCmd.Stdout and StartCmd.Stderr for a file in the attempt's
// directory, StartCmd.IO, which CapturedPath names.
const Captured = proto.Captured

// ErrGone says that a starter is dead. It is a roost.Finished.
var ErrGone = fmt.Errorf("starter is gone: %w", roost.Finished)

// Event is what happened to a starter. It is one of TaskStarted, TaskExited and
// ProcessDied.
type Event interface{ event() }

// TaskStarted says that a task's first process runs.
type TaskStarted struct {
	Attempt TaskAttempt
	PID     int
}

// TaskExited says that a task has ended, or could not be started: then Exit.Step is set.
// Nothing it had forked is left. It is told again after each reconnection until
// DiscardAttempt.
type TaskExited struct {
	Attempt TaskAttempt
	Exit    TaskExit
}

// ProcessDied says that the starter itself is dead; no event follows. With an Err that is
// roost.Stale it is not dead: a newer connection has taken this one's place, or this one
// did not read; Adopt finds it again. Last is the truth that its journal still holds: a
// task that was running then is being killed by the kernel, and Sweep finds what it has
// forked.
type ProcessDied struct {
	LastState ProcessState
	Err       error
}

func (TaskStarted) event() {}
func (TaskExited) event()  {}
func (ProcessDied) event() {}

// Starter is the connection to one starter. Its methods send and do not wait; answers
// come as events. They may be called by several goroutines.
type Starter struct {
	dir       string
	conn      *net.UnixConn
	onEvent   func(Event)
	child     int // its pid when it is a child of ours, else 0
	pidfd     int // of the starter, or -1; the reading goroutine's
	ready     chan struct{}
	done      chan struct{} // closed when the reading goroutine has ended
	mu        sync.Mutex
	pending   []byte // what the write under way will not carry
	writing   bool
	closed    bool
	lastState ProcessState // set before ready is closed
}

// CapturedPath names the file with what an attempt wrote to stdout or stderr, if StartCmd
// asked to have it captured.
func CapturedPath(io string, stderr bool) string {
	return filepath.Join(io, proto.CapturedFile(stderr))
}

// Start runs a task. Started follows, then TaskExited; or TaskExited alone.
func (s *Starter) Start(o StartCmd) error {
	if o.WalltimeReason == "" && o.Walltime > 0 {
		o.WalltimeReason = fmt.Sprintf("walltime of %v exceeded", time.Duration(o.Walltime))
	}
	return s.send(&proto.StarterMessage{Type: proto.TypeStart, Start: o})
}

// Vacate ends a task: SIGTERM to all its processes and after the notice SIGKILL, or
// SIGKILL at once. For another attempt than the one that runs it does nothing.
func (s *Starter) Vacate(stop StopCmd) error {
	return s.send(&proto.StarterMessage{Type: proto.TypeStop, Stop: stop})
}

// Signal sends a signal to the program of a task, and to nothing that it has started.
func (s *Starter) Signal(a TaskAttempt, signal unix.Signal) error {
	return s.send(&proto.StarterMessage{Type: proto.TypeSignal,
		Signal: proto.SignalCmd{Attempt: a, Signal: uint32(signal)}})
}

// SignalAll sends a signal to all processes of a task.
func (s *Starter) SignalAll(a TaskAttempt, signal unix.Signal) error {
	return s.send(&proto.StarterMessage{Type: proto.TypeSignal,
		Signal: proto.SignalCmd{Attempt: a, Signal: uint32(signal), All: true}})
}

// Suspend stops all processes of a task with SIGSTOP.
func (s *Starter) Suspend(a TaskAttempt) error {
	return s.send(&proto.StarterMessage{Type: proto.TypeSuspend, Attempt: a})
}

// Frozen says that they have been stopped by their group. The starter only stops the
// walltime: it may get to it late, when a checkpoint has the group thawed that froze it.
func (s *Starter) Frozen(a TaskAttempt) error {
	return s.send(&proto.StarterMessage{Type: proto.TypeSuspend, Attempt: a, Enabled: true})
}

// Resume lets them go on.
func (s *Starter) Resume(a TaskAttempt) error {
	return s.send(&proto.StarterMessage{Type: proto.TypeResume, Attempt: a})
}

// SetWalltime gives a task another walltime than it was started with, and the sentence
// for when that is over; 0: none. What it has stood still counts for neither.
func (s *Starter) SetWalltime(a TaskAttempt, walltime time.Duration, reason string) error {
	return s.send(&proto.StarterMessage{Type: proto.TypeSetWalltime, Attempt: a,
		Start: proto.StartCmd{Walltime: int64(walltime), WalltimeReason: reason}})
}

// SetFrozen stops whatever the starter runs, or lets it go on if it is not suspended
// besides. Where tasks have a group, that is who calls it to see to: then it only says
// that walltimes stand still.
func (s *Starter) SetFrozen(on bool) error {
	return s.send(&proto.StarterMessage{Type: proto.TypeFreeze, Enabled: on})
}

// RenewLease sets the lease to end so long from now, whenever the starter comes to read
// that.
func (s *Starter) RenewLease(lease time.Duration) error {
	m := &proto.StarterMessage{Type: proto.TypeRenew, Lease: int64(lease)}
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) == nil && m.Lease <= math.MaxInt64-t.Nano() {
		m.Until = max(t.Nano()+m.Lease, 1)
	}
	return s.send(m)
}

// DiscardAttempt drops an ended attempt, and makes the starter idle.
func (s *Starter) DiscardAttempt(a TaskAttempt) error {
	return s.send(&proto.StarterMessage{Type: proto.TypeDiscard, Attempt: a})
}

// Release ends the starter once it is idle; a running task is killed, as removed. Gone
// follows.
func (s *Starter) Release() error {
	return s.send(&proto.StarterMessage{Type: proto.TypeRelease})
}

// PID is the starter's own process; 0 before it has said hello to an adopter.
func (s *Starter) PID() int {
	if s.child != 0 {
		return s.child
	}
	select {
	case <-s.ready:
		return int(s.lastState.Starter)
	default:
		return 0
	}
}

// Dir is the claim's directory.
func (s *Starter) Dir() string { return s.dir }

// Close drops the connection and waits until no event handler runs any more; it may not
// be called from one. The starter lives on.
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

// send writes a frame. Frames that arrive while another goroutine writes travel with that
// one's next write, so that no lock spans it.
func (s *Starter) send(m *proto.StarterMessage) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrGone
	}
	s.pending = proto.AppendFrame(s.pending, m)
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
