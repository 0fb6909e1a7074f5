package shim

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// accept takes a new connection, which replaces the one before: the startd that made it is the newer one. It is told the whole state.
func (s *starter) accept() {
	fd, _, err := syscall.Accept4(listener, syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC)
	if err != nil {
		return
	}
	peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil || peer.Uid != 0 && peer.Uid != uint32(syscall.Geteuid()) {
		syscall.Close(fd)
		return
	}
	s.hangUp()
	s.conn = fd
	s.send(&proto.Message{Type: proto.TypeHello, State: s.state})
}

func (s *starter) hangUp() {
	if s.conn >= 0 {
		syscall.Close(s.conn)
	}
	s.conn, s.input = -1, nil
}

// send tells the startd. One that does not read is hung up on: it will ask for the whole state when it comes again.
func (s *starter) send(m *proto.Message) {
	if s.conn < 0 {
		return
	}
	frame := proto.Append(make([]byte, 0, 128), m)
	if n, err := unix.SendmsgN(s.conn, frame, nil, nil, unix.MSG_NOSIGNAL); err != nil || n != len(frame) {
		s.hangUp()
	}
}

// receive reads what is there, and carries out each whole order.
func (s *starter) receive() {
	fd := s.conn
	if cap(s.input)-len(s.input) < 2048 {
		s.input = append(make([]byte, 0, 2*len(s.input)+4096), s.input...)
	}
	n, err := syscall.Read(fd, s.input[len(s.input):cap(s.input)])
	if err == syscall.EAGAIN || err == syscall.EINTR {
		return
	}
	if err != nil || n == 0 {
		s.hangUp()
		return
	}
	rest := s.input[:len(s.input)+n]
	for s.conn == fd {
		body, after, ok := proto.Next(rest)
		if ok && body == nil {
			s.keep(after)
			return
		}
		m, sense := proto.Message{}, false
		if ok {
			m, sense = proto.Decode(body)
		}
		if !sense {
			complain("order without sense", syscall.EPROTO)
			s.hangUp()
			return
		}
		s.obey(&m)
		rest = after
	}
}

// keep holds the beginning of an order until the rest comes. A buffer that a big order needed is not kept for small ones.
func (s *starter) keep(rest []byte) {
	if len(rest) == 0 && cap(s.input) > 64<<10 {
		s.input = nil
		return
	}
	s.input = append(s.input[:0], rest...)
}

func (s *starter) obey(m *proto.Message) {
	switch m.Type {
	case proto.TypeStart:
		s.start(&m.Order)
	case proto.TypeStop:
		if s.runs(m.Stop.Attempt) {
			s.stop(m.Stop.Cause, m.Stop.Reason, m.Stop.Fast, m.Stop.Notice, syscall.Signal(m.Stop.Signal&0x7f))
		}
	case proto.TypeSignal:
		if s.runs(m.Kick.Attempt) && m.Kick.Signal <= 64 {
			s.kick(syscall.Signal(m.Kick.Signal), m.Kick.All)
		}
	case proto.TypeSuspend:
		if s.runs(m.Attempt) {
			s.suspend(m.On)
		}
	case proto.TypeResume:
		if s.runs(m.Attempt) {
			s.resume()
		}
	case proto.TypeLimit:
		if s.runs(m.Attempt) {
			s.limit(m.Order.Walltime, m.Order.WalltimeReason)
		}
	case proto.TypeHold:
		s.hold(m.On)
	case proto.TypeRenew:
		s.renew(m.Lease, m.Until)
	case proto.TypeForget:
		s.forget(m.Attempt)
	case proto.TypeRelease:
		s.release = true
		s.stop(proto.Removed, "the claim was released", true, 0, 0)
	}
}

func (s *starter) runs(a proto.Attempt) bool {
	return s.state.Phase == proto.Running && s.reaping == 0 && s.state.Attempt == a
}
