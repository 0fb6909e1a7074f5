package shim

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// starter is all there is to know. Deadlines are nanoseconds of CLOCK_BOOTTIME, 0 for none.
type starter struct {
	dir       string
	journal   int // descriptor
	written   int // bytes in the journal
	conn      int // descriptor of the connection, or -1
	input     []byte
	state     proto.State
	order     proto.Order
	pidfd     int // of the task's first process, or -1
	lease     int64
	walltime  int64
	stood     int64       // how long the task has stood still, until it last went on
	kill      int64       // when the notice is over
	timer     int         // descriptor
	armed     int64       // what it is set to
	wakeTimer kernelTimer // see leasetimers.go
	killTimer kernelTimer
	killed    bool           // SIGKILL was sent
	stopping  bool           // the end was ordered, by whatever cause; the first cause stands
	by        syscall.Signal // with which it was; 0: SIGTERM to all there is
	owed      uint64         // signals that came before there was a program, bit n-1 for number n
	cause     proto.Cause
	reason    string
	release   bool
	group     group
	staged    bool           // the root of boxes is there
	devices   []proto.Device // that are in it, beside those that everybody has
	report    int            // descriptor where the box tells how it goes; -1 when it has told, or there is none
	helper    bool           // the first process is the helper that restores the task
	suspended bool           // the task is to stand still, by itself
	held      bool           // whatever runs here is
	paused    int64          // since when it does; 0: it does not
	reaping   int            // the first process has ended, its descendants not yet: how often they were killed; 0 for not now
	exit      proto.Exit     // as far as it is known while reaping
	spent     proto.Exit     // processor time and memory of what was reaped so far
	busy      bool           // something was done since memory was given back
}

func now() int64 {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_BOOTTIME, &t)
	return t.Nano()
}

// run goes on until the claim is released or its lease has run out.
func (s *starter) run() {
	for !s.over() {
		s.arm()
		wait := -1
		if s.reaping > 0 {
			wait = min(s.reaping, 100) // what does not die at once is looked at ever more seldom
		} else if s.busy {
			wait = restAfter
		}
		fds := [5]unix.PollFd{
			{Fd: listener, Events: unix.POLLIN}, {Fd: int32(s.conn), Events: unix.POLLIN}, {Fd: int32(s.pidfd), Events: unix.POLLIN},
			{Fd: int32(s.timer), Events: unix.POLLIN}, {Fd: int32(s.report), Events: unix.POLLIN},
		}
		n, err := unix.Poll(fds[:], wait)
		if err != nil {
			fds = [5]unix.PollFd{}
		}
		if s.rest(n == 0 && s.reaping == 0) {
			continue
		}
		if err == unix.EINTR && s.pidfd >= 0 {
			s.reapOrphans()
		}
		if fds[4].Revents != 0 {
			s.reported()
		} else if fds[2].Revents != 0 {
			s.ended()
		} else if s.reaping > 0 {
			s.reap()
		}
		if fds[0].Revents != 0 {
			s.accept()
		} else if fds[1].Revents != 0 {
			s.receive()
		}
		s.expire()
	}
}

// over says whether the starter has nothing more to do: released, or without a lease; and no task runs.
func (s *starter) over() bool {
	return s.state.Phase != proto.Running && (s.release || s.lease <= now())
}

// arm sets the timer to the next deadline. It is a timer of CLOCK_BOOTTIME, because a timeout of poll's stands still while the machine
// sleeps, and a lease does not.
func (s *starter) arm() {
	if s.lease <= now() {
		s.guard()
	}
	next := s.lease
	if s.state.Phase == proto.Running && s.paused == 0 {
		for _, t := range [...]int64{s.walltime, s.kill} {
			if t != 0 && t < next {
				next = t
			}
		}
		if s.killed {
			next = now() + 1e9 // look again whether something was forked past the signal
		}
	}
	if next == s.armed {
		return
	}
	s.armed = next
	due := unix.ItimerSpec{Value: unix.NsecToTimespec(max(next, 1))}
	if err := unix.TimerfdSettime(s.timer, unix.TFD_TIMER_ABSTIME, &due, nil); err != nil {
		die("timer", errno(err))
	}
}

// never is the time of a deadline that does not come.
const never = 1<<63 - 1

// expire does what is due.
func (s *starter) expire() {
	if s.state.Phase != proto.Running || s.reaping > 0 {
		return
	}
	t := now()
	switch {
	case s.killed:
		if s.armed <= t {
			s.signalTree(syscall.SIGKILL)
		}
	case s.lease <= t:
		s.stop(proto.Lease, "the lease ran out", true, 0, 0)
	case s.paused != 0: // neither counts while it is suspended
	case s.walltime != 0 && s.walltime <= t:
		s.walltime = 0
		s.stop(proto.Walltime, s.order.WalltimeReason, false, s.order.Notice, 0)
	case s.kill != 0 && s.kill <= t:
		s.destroy()
	}
}

// limit gives the task another walltime, counted from its start without the time that it stood still. One that is on its way out is left alone.
func (s *starter) limit(walltime int64, reason string) {
	if s.stopping {
		return
	}
	s.order.Walltime, s.order.WalltimeReason, s.walltime = walltime, reason, 0
	if walltime > 0 {
		s.walltime = s.state.Since + s.stood + walltime
	}
}

// destroy sends SIGKILL to all there is.
func (s *starter) destroy() {
	s.killed = true
	s.signalTree(syscall.SIGKILL)
	if s.helper {
		s.group.kill() // what it has restored already may not be below us
	}
	if s.paused != 0 {
		s.group.freeze(false)
	}
	if s.group.first { // in that freezer nothing dies, and its startd may have stopped it without a word to us
		s.group.freeze(false)
		s.group.unhold()
	}
}

// stop begins the end of the task: by a signal to the program, or for 0 by SIGTERM to all there is. A faster order overtakes a slower one; the
// cause is that of the first.
func (s *starter) stop(cause proto.Cause, reason string, fast bool, notice int64, by syscall.Signal) {
	if s.state.Phase != proto.Running || s.reaping > 0 {
		return
	}
	first := !s.stopping
	if first {
		s.stopping, s.cause, s.reason = true, cause, reason
	}
	if fast || notice <= 0 {
		s.destroy()
		return
	}
	s.resume() // a frozen process would not see what it is sent
	if deadline := now() + notice; s.kill == 0 || deadline < s.kill {
		s.kill = deadline
	}
	if first {
		s.by = by
		if s.report < 0 { // else there is no program yet to hear it
			s.ask()
		}
	}
}

// ask tells the task to end.
func (s *starter) ask() {
	if s.by != 0 {
		s.signalProgram(s.by)
	} else {
		s.signalTree(syscall.SIGTERM)
	}
	s.signalTree(syscall.SIGCONT) // a stopped process would not see it
}

// catchUp gives a program that has just begun what it was sent while its box was being made. That may take long, and what goes to the box's
// processes meanwhile reaches nobody: the first process of a PID namespace hears only what it wants to.
func (s *starter) catchUp() {
	for signal := syscall.Signal(1); s.owed != 0; signal++ {
		if s.owed&1 != 0 {
			s.signalProgram(signal)
		}
		s.owed >>= 1
	}
	switch {
	case s.stopping && !s.killed:
		s.ask()
	case s.suspended:
		s.pause(s.group.freeze(true))
	case s.held: // its group is not frozen by itself: nobody would let it go on
		s.pause(s.group.dir != "")
	}
}

// renew has the lease end so long from now, but not after an instant, 0 for none: an order may be read long after it was given.
func (s *starter) renew(lease, until int64) {
	t := now()
	s.lease = never
	if lease <= never-t {
		s.lease = t + lease
	}
	if until > 0 {
		s.lease = min(s.lease, until)
	}
	s.guard()
}
