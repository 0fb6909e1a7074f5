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

// Types of package proto, for callers of this one.
type (
	TaskAttempt  = proto.TaskAttempt
	StartCmd     = proto.StartCmd
	TaskExit     = proto.TaskExit
	ProcessState = proto.StarterState
	StopCmd      = proto.StopCmd
	SecretFile   = proto.SecretFile
	EndSignal    = proto.EndSignal
)

// Captured is a value of StartCmd.Stdout and StartCmd.Stderr. It denotes a file in the
// attempt's directory, StartCmd.IO, which CapturedPath names.
const Captured = proto.Captured

// ErrGone reports that a starter is dead. It is a roost.Finished.
var ErrGone = fmt.Errorf("starter is gone: %w", roost.Finished)

// Event is an event of a starter: a TaskStarted, TaskExited or ProcessDied.
type Event interface{ event() }

// TaskStarted reports that a task's first process runs.
type TaskStarted struct {
	Attempt TaskAttempt
	PID     int
}

// TaskExited reports that a task has ended, or could not be started: then Exit.Step is
// set. No descendant of the task is left. It is repeated after each reconnection until
// DiscardAttempt.
type TaskExited struct {
	Attempt TaskAttempt
	Exit    TaskExit
}

// ProcessDied reports that the starter itself is dead; no event follows. If Err is a
// roost.Stale the starter is alive: a newer connection has replaced this one, or this one
// did not read; Adopt reconnects. LastState is the state in its journal: the kernel kills
// a task that was running then, and Sweep finds its descendants.
type ProcessDied struct {
	LastState ProcessState
	Err       error
}

func (TaskStarted) event() {}
func (TaskExited) event()  {}
func (ProcessDied) event() {}

// Starter is the connection to one starter. Its methods send a command and return at
// once; answers are events. Several goroutines may call them.
type Starter struct {
	dir       string
	conn      *net.UnixConn
	onEvent   func(Event)
	child     int // its pid if it is a child of ours, else 0
	pidfd     int // of the starter, or -1; the reading goroutine owns it
	ready     chan struct{}
	done      chan struct{} // closed when the reading goroutine has ended
	mu        sync.Mutex
	pending   []byte // frames for the write after the current one
	writing   bool
	closed    bool
	delayed   *time.Timer  // writes what is pending, unless another command does; nil: none was delayed yet
	lastState ProcessState // set before ready is closed
}

// CapturedPath returns the path of an attempt's captured stdout or stderr.
func CapturedPath(io string, stderr bool) string {
	return filepath.Join(io, proto.CapturedFile(stderr))
}

// Start runs a task. A TaskStarted and then a TaskExited follow, or only a TaskExited.
func (s *Starter) Start(o StartCmd) error {
	if o.WalltimeReason == "" && o.Walltime > 0 {
		o.WalltimeReason = fmt.Sprintf("walltime of %v exceeded", time.Duration(o.Walltime))
	}
	return s.send(&proto.StarterMessage{Type: proto.TypeStart, Start: o})
}

// Prepare has an idle starter make what the sandbox of its first task needs. There is no
// answer.
func (s *Starter) Prepare(o StartCmd) error {
	return s.send(&proto.StarterMessage{Type: proto.TypePrepare, Start: o})
}

// Vacate ends a task with SIGTERM to all its processes and SIGKILL after the notice, or
// SIGKILL at once. It has no effect if another attempt is running.
func (s *Starter) Vacate(stop StopCmd) error {
	return s.send(&proto.StarterMessage{Type: proto.TypeStop, Stop: stop})
}

// Signal sends a signal to the program of a task, and not to its children.
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

// Frozen reports to the starter that the task's cgroup is frozen. The starter only pauses
// the walltime: it may process this late, when a checkpoint has thawed the cgroup for a
// moment.
func (s *Starter) Frozen(a TaskAttempt) error {
	return s.send(&proto.StarterMessage{Type: proto.TypeSuspend, Attempt: a, Enabled: true})
}

// Resume resumes the processes of a suspended task.
func (s *Starter) Resume(a TaskAttempt) error {
	return s.send(&proto.StarterMessage{Type: proto.TypeResume, Attempt: a})
}

// SetWalltime changes the walltime of a task, with the reason for its end; 0: none.
// Suspended time does not count.
func (s *Starter) SetWalltime(a TaskAttempt, walltime time.Duration, reason string) error {
	return s.send(&proto.StarterMessage{Type: proto.TypeSetWalltime, Attempt: a,
		Start: proto.StartCmd{Walltime: int64(walltime), WalltimeReason: reason}})
}

// SetFrozen freezes the starter's task, or thaws it unless it is also suspended. If tasks
// have a cgroup the caller freezes that itself, and the starter only pauses the
// walltimes.
func (s *Starter) SetFrozen(on bool) error {
	return s.send(&proto.StarterMessage{Type: proto.TypeFreeze, Enabled: on})
}

// RenewLease sets the lease to end after a time from now, no matter when the starter
// reads it.
func (s *Starter) RenewLease(lease time.Duration) error {
	m := &proto.StarterMessage{Type: proto.TypeRenew, Lease: int64(lease)}
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) == nil && m.Lease <= math.MaxInt64-t.Nano() {
		m.Until = max(t.Nano()+m.Lease, 1)
	}
	return s.send(m)
}

// ReplaceSecrets gives a running task the new versions of its secrets, and then sends its
// program the signals.
func (s *Starter) ReplaceSecrets(a TaskAttempt, secrets []SecretFile, signals []uint32) error {
	return s.send(&proto.StarterMessage{Type: proto.TypeSecrets, Attempt: a,
		Start: proto.StartCmd{Secrets: secrets}, Signals: signals})
}

// discardDelay is how long the starter may go on without the word that an attempt is
// dropped. The next task of a row of short ones comes before, and both wake it once.
const discardDelay = 5 * time.Millisecond

// DiscardAttempt drops an ended attempt, which makes the starter idle. The command goes
// along with the next one, or after discardDelay.
func (s *Starter) DiscardAttempt(a TaskAttempt) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrGone
	}
	s.pending = proto.AppendFrame(s.pending, &proto.StarterMessage{Type: proto.TypeDiscard, Attempt: a})
	if s.delayed == nil {
		s.delayed = time.AfterFunc(discardDelay, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.writePending()
		})
	} else {
		s.delayed.Reset(discardDelay)
	}
	return nil
}

// Release ends the starter once it is idle. It kills a running task, with the cause
// Removed. A ProcessDied follows.
func (s *Starter) Release() error {
	return s.send(&proto.StarterMessage{Type: proto.TypeRelease})
}

// PID returns the pid of the starter, or 0 before its Hello to a startd that adopts it.
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

// Dir returns the claim's directory.
func (s *Starter) Dir() string { return s.dir }

// Close closes the connection and waits until no event handler runs any more. It must not
// be called from an event handler. The starter continues to run.
func (s *Starter) Close() error {
	s.mu.Lock()
	s.writePending() // a starter that is dead needs none
	s.closed = true
	s.mu.Unlock()
	err := s.conn.Close()
	<-s.done
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// send writes a frame. While another goroutine writes, that goroutine writes the frame
// next, so that no lock is held during a write.
func (s *Starter) send(m *proto.StarterMessage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrGone
	}
	s.pending = proto.AppendFrame(s.pending, m)
	return s.writePending()
}

// writePending writes the frames that are pending, unless another goroutine does. The
// caller has the lock, which is released during each write.
func (s *Starter) writePending() error {
	if s.writing || s.closed {
		return nil
	}
	if s.delayed != nil {
		s.delayed.Stop()
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
			return fmt.Errorf("starter in %s: %w", s.dir, ErrGone)
		}
	}
	s.writing = false
	return nil
}
