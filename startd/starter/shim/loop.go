package shim

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// starter is all there is to know. Deadlines are nanoseconds of CLOCK_BOOTTIME, 0 for none.
type starter struct {
	dir      string
	journal  int // descriptor
	written  int // bytes in the journal
	conn     int // descriptor of the connection, or -1
	input    []byte
	state    proto.State
	order    proto.Order
	pidfd    int // of the task's first process, or -1
	lease    int64
	walltime int64
	kill     int64 // when the notice is over
	stopping bool  // the end was ordered, by whatever cause; the first cause stands
	cause    proto.Cause
	reason   string
	release  bool
	reaping  int        // the first process has ended, its descendants not yet: how often they were killed; 0 for not now
	exit     proto.Exit // as far as it is known while reaping
	spent    proto.Exit // processor time and memory of what was reaped so far
}

func now() int64 {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_BOOTTIME, &t)
	return t.Nano()
}

// run goes on until the claim is released or its lease has run out.
func (s *starter) run() {
	for !s.over() {
		fds := [3]unix.PollFd{
			{Fd: listener, Events: unix.POLLIN}, {Fd: int32(s.conn), Events: unix.POLLIN}, {Fd: int32(s.pidfd), Events: unix.POLLIN},
		}
		_, err := unix.Poll(fds[:], s.timeout())
		if err == unix.EINTR && s.pidfd >= 0 {
			s.reapOrphans()
		}
		if fds[2].Revents != 0 && err == nil {
			s.ended()
		} else if s.reaping > 0 {
			s.reap()
		}
		if fds[0].Revents != 0 && err == nil {
			s.accept()
		} else if fds[1].Revents != 0 && err == nil {
			s.receive()
		}
		s.expire()
	}
}

// over says whether the starter has nothing more to do: released, or without a lease; and no task runs.
func (s *starter) over() bool {
	return s.state.Phase != proto.Running && (s.release || s.lease <= now())
}

// timeout is how long poll may wait, in milliseconds, rounded up so that a deadline is over when it returns.
func (s *starter) timeout() int {
	next := s.lease
	if s.reaping > 0 {
		return min(s.reaping, 100) // what does not die at once is looked at ever more seldom
	}
	if s.state.Phase == proto.Running {
		for _, t := range [...]int64{s.walltime, s.kill} {
			if t != 0 && t < next {
				next = t
			}
		}
		if s.stopping && s.cause == proto.Lease || s.kill == never {
			next = now() + 1e9 // SIGKILL was sent; look again
		}
	}
	wait := (next - now() + 999999) / 1000000
	return int(min(max(wait, 0), 1<<30))
}

// never is the time of a deadline that was dealt with.
const never = 1<<63 - 1

// expire does what is due.
func (s *starter) expire() {
	if s.state.Phase != proto.Running || s.reaping > 0 {
		return
	}
	t := now()
	switch {
	case s.lease <= t:
		s.stop(proto.Lease, "the lease ran out", true, 0)
	case s.walltime != 0 && s.walltime <= t:
		s.walltime = 0
		s.stop(proto.Walltime, s.order.WalltimeReason, false, s.order.Notice)
	case s.kill != 0 && s.kill <= t:
		s.kill = never
		s.signalTree(syscall.SIGKILL)
	}
}

// stop begins the end of the task. A faster order overtakes a slower one; the cause is that of the first.
func (s *starter) stop(cause proto.Cause, reason string, fast bool, notice int64) {
	if s.state.Phase != proto.Running || s.reaping > 0 {
		return
	}
	first := !s.stopping
	if first {
		s.stopping, s.cause, s.reason = true, cause, reason
	}
	if fast || notice <= 0 {
		s.kill = never
		s.signalTree(syscall.SIGKILL)
		return
	}
	if deadline := now() + notice; s.kill == 0 || deadline < s.kill {
		s.kill = deadline
	}
	if first {
		s.signalTree(syscall.SIGTERM)
		s.signalTree(syscall.SIGCONT) // a stopped process would not see it
	}
}

func (s *starter) renew(lease int64) {
	if lease > never-now() {
		s.lease = never
		return
	}
	s.lease = now() + lease
}
