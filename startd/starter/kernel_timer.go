package starter

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// That a task does not outlive its lease must not hang on this process coming round in
// its loop: it may be stopped (SIGSTOP), or wait where nobody lets it go on. Two timers
// of the kernel's see to it, which count while nothing of Roost's runs, and are moved
// with the lease:
//
//	at the end of the lease       SIGCONT, which lets a stopped starter go on, and does nothing to one that runs. It then ends its task in its loop.
//	outlived after it             SIGKILL, for one that has not come round by then. Its task's first process dies with it, and so does its box.
//
// Nothing of them is in the task, so no checkpoint knows of them, and a task that goes on
// elsewhere is under the timers of its starter there.
//
// While it forks, a starter waits for its child to have begun the program (vfork(2)).
// Where the group that the child is born in stands still, which another process may say
// at any moment, the child does not begin, and nothing but that process lets the starter
// go on. So the second timer is set earlier meanwhile. The child has run nothing of its
// program, and never will: the first that it does when it may go on is to have itself
// killed when its parent is gone, and to look whether it is.

const (
	// killAfterLease is how long after its lease a starter is killed whose loop does not
	// come round. It is less than a schedd waits after a lease before it runs the task
	// elsewhere (10 s), and more than a starter without the right of way may be late on a
	// busy machine.
	killAfterLease = 4e9 // ns
	// killAfterFork is the same for one that waits for its child.
	killAfterFork = 1e9 // ns
)

// kernelTimer is a timer by which the kernel sends this process a signal. The zero value
// is none.
type kernelTimer struct {
	id   int32
	made bool
}

// makeTimers makes both. A user may have used up his timers: then the starter goes on
// without, and its loop is all there is.
func (s *starterProcess) makeTimers() {
	s.wakeTimer.create(int32(unix.SIGCONT))
	s.killTimer.create(int32(unix.SIGKILL))
}

// armLeaseTimers sets both by the lease. One whose loop comes round after that, because
// what it has killed does not die at once, is given more time each time.
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

// setForkDeadline has the starter killed soon after its lease while it forks; guard
// undoes that.
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

// set has it go off at an instant of CLOCK_BOOTTIME, at once if that has passed; 0:
// never.
func (t *kernelTimer) set(at int64) {
	if !t.made {
		return
	}
	due := unix.ItimerSpec{Value: unix.NsecToTimespec(at)}
	unix.RawSyscall6(unix.SYS_TIMER_SETTIME, uintptr(t.id), unix.TFD_TIMER_ABSTIME,
		uintptr(unsafe.Pointer(&due)), 0, 0, 0)
}

// sigEvent is struct sigevent of the kernel, of 64 bytes; a notify of 0 is SIGEV_SIGNAL.
type sigEvent struct {
	value  uintptr
	signal int32
	notify int32
	_      [48]byte
}
