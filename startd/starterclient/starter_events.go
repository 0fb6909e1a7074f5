package starterclient

import (
	"errors"
	"fmt"
	"io"
	"net"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/startd/starter/proto"
)

// newStarter makes the Starter and starts the goroutine that reads the starter's
// messages.
func newStarter(dir string, conn *net.UnixConn, handle func(Event), child, pidfd int) *Starter {
	s := &Starter{dir: dir, conn: conn, onEvent: handle, child: child, pidfd: pidfd, ready: make(chan struct{}),
		done: make(chan struct{})}
	go s.readEvents()
	return s
}

func (s *Starter) readEvents() {
	defer close(s.done)
	err := s.readMessages()
	s.mu.Lock()
	byUs := s.closed && errors.Is(err, net.ErrClosed)
	s.closed = true
	s.mu.Unlock()
	s.conn.Close()
	if byUs {
		s.disown()
		return
	}
	dead := s.awaitExit()
	select {
	case <-s.ready:
	default:
		if s.child == 0 {
			return // Adopt returns the error
		}
	}
	last, jerr := ReadJournal(s.dir)
	switch {
	case !dead:
		err = fmt.Errorf("starter in %s: %w: it has dropped this connection and lives on", s.dir, roost.Stale)
	case jerr != nil:
		err = jerr
	case errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET):
		err = nil
	}
	s.onEvent(ProcessDied{LastState: last, Err: err})
}

// readMessages delivers events until the connection ends, and returns the reason.
func (s *Starter) readMessages() error {
	buffer, filled := make([]byte, 4096), 0
	for {
		rest := buffer[:filled]
		for {
			body, after, ok := proto.SplitFrame(rest)
			if !ok {
				return fmt.Errorf("starter in %s: %w: a frame of impossible length", s.dir, roost.Internal)
			}
			if body == nil {
				break
			}
			m, ok := proto.DecodeBody(body)
			if !ok {
				return fmt.Errorf("starter in %s: %w: a message without sense", s.dir, roost.Internal)
			}
			s.deliverEvent(&m)
			rest = after
		}
		filled = copy(buffer, rest) // to the front, so that the free space does not shrink
		if filled == len(buffer) {
			buffer = append(buffer, make([]byte, len(buffer))...)
		}
		n, err := s.conn.Read(buffer[filled:])
		if err != nil {
			return err
		}
		filled += n
	}
}

// deliverEvent delivers a message as an event. The first Hello marks the starter as
// ready, and its state is delivered as events.
func (s *Starter) deliverEvent(m *proto.StarterMessage) {
	switch m.Type {
	case proto.TypeHello:
		select {
		case <-s.ready:
			return
		default:
		}
		s.lastState = m.State
		if s.pidfd < 0 {
			s.pidfd, _ = unix.PidfdOpen(int(m.State.Starter), 0) // it is alive, so the pid is its own; -1 on failure
		}
		close(s.ready)
		if m.State.Phase == proto.Ended {
			s.onEvent(TaskExited{m.State.Attempt, m.State.Exit})
		}
	case proto.TypeStarted:
		s.onEvent(TaskStarted{m.Attempt, int(m.State.PID)})
	case proto.TypeExited:
		s.onEvent(TaskExited{m.Attempt, m.State.Exit})
	}
}

// awaitExit waits until a starter that closed the connection is dead. By then the kernel
// has killed its task's first process. It returns false if the starter lives on because
// it has another connection. It reaps a child of ours.
func (s *Starter) awaitExit() (dead bool) {
	if s.pidfd < 0 {
		return true // it has never sent a Hello
	}
	defer unix.Close(s.pidfd)
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(s.pidfd), Events: unix.POLLIN}},
			int(connectTimeout.Milliseconds()))
		if err != unix.EINTR {
			dead = err == nil && n > 0
			break
		}
	}
	switch {
	case dead && s.child != 0:
		reapChild(s.child)
	case s.child != 0:
		go reapChild(s.child)
	}
	return dead
}

// disown releases a starter that lives on. A child of ours must still be reaped when it
// ends.
func (s *Starter) disown() {
	if s.pidfd >= 0 {
		unix.Close(s.pidfd)
	}
	if s.child != 0 {
		go reapChild(s.child)
	}
}

func reapChild(pid int) {
	for {
		if _, err := unix.Wait4(pid, nil, 0, nil); err != unix.EINTR {
			return
		}
	}
}
