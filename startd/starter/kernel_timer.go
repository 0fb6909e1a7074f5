package starter

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// A task must end with its lease even if this process does not reach its loop: it may be
// stopped (SIGSTOP) or blocked for ever. Two kernel timers ensure this. They run without
// any Roost process and are set again with each lease:
//
//	at the end of the lease    SIGCONT, which resumes a stopped starter and has no effect
//	                           on a running one. The starter then ends its task.
//	killAfterLease later       SIGKILL, for a starter that has not reached its loop. The
//	                           task's first process dies with it, and so does its sandbox.
//
// The timers do not belong to the task, so no checkpoint contains them. A task that
// resumes elsewhere is under the timers of its starter there.
//
// While it forks, a starter waits until its child has started the program (vfork(2)). If
// another process freezes the child's cgroup meanwhile, the child does not start, and
// only a thaw unblocks the starter. So during a fork the second timer is set earlier. The
// child has not run the program and never will: on its first instruction it requests to
// be killed with its parent and checks that the parent is alive.

const (
	// killAfterLease is how long after its lease a starter is killed that does not reach
	// its loop. It is shorter than the time that a schedd waits after a lease before it
	// runs the task elsewhere (10 s). It is longer than the delay of a low-priority
	// starter on a busy machine.
	killAfterLease = 4e9 // ns
	// killAfterFork is the same time for a starter that waits for its child.
	killAfterFork = 1e9 // ns
)

// kernelTimer is a timer with which the kernel sends this process a signal. The zero
// value is no timer.
type kernelTimer struct {
	id   int32
	made bool
}

// makeTimers creates both timers. If the user's limit of timers is exhausted the starter
// continues without, and only its loop enforces the lease.
func (s *starterProcess) makeTimers() {
	s.wakeTimer.create(int32(unix.SIGCONT))
	s.killTimer.create(int32(unix.SIGKILL))
}

// armLeaseTimers sets both timers for the lease. If the loop is still running after that,
// because killed processes do not die at once, each call extends the time.
func (s *starterProcess) armLeaseTimers() {
	if s.lease >= noDeadline-killAfterLease {
		s.wakeTimer.set(0)
		s.killTimer.set(0)
		return
	}
	if t := now(); s.lease <= t {
		s.killTimer.set(t + killAfterLease)
		return
	}
	s.wakeTimer.set(s.lease)
	s.killTimer.set(s.lease + killAfterLease)
}

// setForkDeadline shortens the time to SIGKILL while the starter forks. armLeaseTimers
// resets it.
func (s *starterProcess) setForkDeadline() {
	if s.lease < noDeadline-killAfterFork {
		s.killTimer.set(s.lease + killAfterFork)
	}
}

func (t *kernelTimer) create(signal int32) {
	e := sigEvent{signal: signal}
	_, _, err := unix.RawSyscall(unix.SYS_TIMER_CREATE, unix.CLOCK_BOOTTIME, uintptr(unsafe.Pointer(&e)),
		uintptr(unsafe.Pointer(&t.id)))
	if t.made = err == 0; err != 0 {
		logError("a timer for the end of the lease", err)
	}
}

// set makes the timer expire at an instant of CLOCK_BOOTTIME, at once if it has passed;
// 0: never.
func (t *kernelTimer) set(at int64) {
	if !t.made {
		return
	}
	due := unix.ItimerSpec{Value: unix.NsecToTimespec(at)}
	unix.RawSyscall6(unix.SYS_TIMER_SETTIME, uintptr(t.id), unix.TFD_TIMER_ABSTIME,
		uintptr(unsafe.Pointer(&due)), 0, 0, 0)
}

// sigEvent is the kernel's struct sigevent, of 64 bytes; a notify of 0 is SIGEV_SIGNAL.
type sigEvent struct {
	value  uintptr
	signal int32
	notify int32
	_      [48]byte
}
