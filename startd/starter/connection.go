package starter

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// accept accepts a connection, which replaces the previous one: the startd that opened it
// is the newer one. The starter sends it the whole state.
func (s *starterProcess) accept() {
	fd, _, err := syscall.Accept4(listenerFD, syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC)
	if err != nil {
		return
	}
	peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil || peer.Uid != 0 && peer.Uid != uint32(syscall.Geteuid()) {
		syscall.Close(fd)
		return
	}
	s.closeConnection()
	s.conn = fd
	s.send(&proto.StarterMessage{Type: proto.TypeHello, State: s.state})
}

func (s *starterProcess) closeConnection() {
	if s.conn >= 0 {
		syscall.Close(s.conn)
	}
	s.conn, s.input, s.output = -1, nil, s.output[:0]
}

// send sends a message to the startd with the next flushOutput.
func (s *starterProcess) send(m *proto.StarterMessage) {
	if s.conn >= 0 {
		s.output = proto.AppendFrame(s.output, m)
	}
}

// flushOutput sends the messages since the last one. It closes the connection of a startd
// that does not read: the startd gets the whole state when it reconnects.
func (s *starterProcess) flushOutput() {
	if len(s.output) == 0 {
		return
	}
	n, err := unix.SendmsgN(s.conn, s.output, nil, nil, unix.MSG_NOSIGNAL)
	if err != nil || n != len(s.output) {
		s.closeConnection()
	}
	s.output = s.output[:0]
}

// receive reads the available bytes and executes each complete command.
func (s *starterProcess) receive() {
	fd := s.conn
	if cap(s.input)-len(s.input) < 2048 {
		s.input = append(make([]byte, 0, 2*len(s.input)+4096), s.input...)
	}
	n, err := syscall.Read(fd, s.input[len(s.input):cap(s.input)])
	if err == syscall.EAGAIN || err == syscall.EINTR {
		return
	}
	if err != nil || n == 0 {
		s.closeConnection()
		return
	}
	rest := s.input[:len(s.input)+n]
	for s.conn == fd {
		body, after, ok := proto.SplitFrame(rest)
		if ok && body == nil {
			s.bufferPartial(after)
			return
		}
		m, sense := proto.StarterMessage{}, false
		if ok {
			m, sense = proto.DecodeBody(body)
		}
		if !sense {
			logError("order without sense", syscall.EPROTO)
			s.closeConnection()
			return
		}
		s.handle(&m)
		if len(m.Start.Secrets) > 0 || m.Type == proto.TypeSecrets {
			clear(body)
		}
		rest = after
	}
}

// bufferPartial saves the beginning of a command until the rest arrives. It releases a
// large buffer once it is empty.
func (s *starterProcess) bufferPartial(rest []byte) {
	if len(rest) == 0 && cap(s.input) > 64<<10 {
		s.input = nil
		return
	}
	s.input = append(s.input[:0], rest...)
}

func (s *starterProcess) handle(m *proto.StarterMessage) {
	switch m.Type {
	case proto.TypeStart:
		s.startTask(&m.Start)
	case proto.TypePrepare:
		s.prepareSandbox(&m.Start)
	case proto.TypeStop:
		if s.isRunning(m.Stop.Attempt) {
			s.stopTask(m.Stop.Cause, m.Stop.Reason, m.Stop.Fast, m.Stop.Notice, syscall.Signal(m.Stop.Signal&0x7f))
		}
	case proto.TypeSignal:
		if s.isRunning(m.Signal.Attempt) && m.Signal.Signal <= 64 {
			s.signalTask(syscall.Signal(m.Signal.Signal), m.Signal.All)
		}
	case proto.TypeSuspend:
		if s.isRunning(m.Attempt) {
			s.suspendTask(m.Enabled)
		}
	case proto.TypeResume:
		if s.isRunning(m.Attempt) {
			s.resumeTask()
		}
	case proto.TypeSetWalltime:
		if s.isRunning(m.Attempt) {
			s.setWalltime(m.Start.Walltime, m.Start.WalltimeReason)
		}
	case proto.TypeSecrets:
		if s.isRunning(m.Attempt) {
			replaceSecrets(s, &m.Start, m.Signals)
		}
	case proto.TypeFreeze:
		s.setFrozen(m.Enabled)
	case proto.TypeRenew:
		s.renewLease(m.Lease, m.Until)
	case proto.TypeDiscard:
		s.discardTask(m.Attempt)
	case proto.TypeRelease:
		s.release = true
		s.stopTask(proto.Removed, "the claim was released", true, 0, 0)
	}
}

func (s *starterProcess) isRunning(a proto.TaskAttempt) bool {
	return s.state.Phase == proto.Running && s.reaping == 0 && s.state.Attempt == a
}
