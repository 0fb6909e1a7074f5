package shim

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// While it forks, a starter waits for its child to have begun the program (vfork(2)). Where the group that the child is born in stands still, which another
// process may say at any moment, the child does not begin, and nothing but that process lets the starter go on: a timer of its own loop would be of no use when the
// lease runs out, nor would any signal that it could handle. One that it cannot reaches it even there.
//
// So a timer of the kernel's ends the starter soon after its lease, if it has not come back by then. The child has run nothing of its program, and never will: the
// first that it does when it may go on is to have itself killed when its parent is gone, and to look whether it is.

// doomed is how long after the lease a starter that waits for its child is ended. Usually it gets on, and ends the task itself.
const doomed = 1e9 // ns

// doom sets that timer; spare stops it. Without a timer, of which a user may have used up his, the starter forks all the same.
func (s *starter) doom() {
	if s.lease >= never-doomed {
		return
	}
	if !s.hasDoom {
		e := event{signal: int32(unix.SIGKILL)}
		_, _, err := unix.RawSyscall(unix.SYS_TIMER_CREATE, unix.CLOCK_BOOTTIME, uintptr(unsafe.Pointer(&e)), uintptr(unsafe.Pointer(&s.doomTimer)))
		if s.hasDoom = err == 0; err != 0 {
			complain("a timer for the end of the lease", err)
			return
		}
	}
	s.setDoom(s.lease + doomed)
}

func (s *starter) spare() {
	if s.hasDoom {
		s.setDoom(0)
	}
}

func (s *starter) setDoom(at int64) {
	due := unix.ItimerSpec{Value: unix.NsecToTimespec(at)}
	unix.RawSyscall6(unix.SYS_TIMER_SETTIME, uintptr(s.doomTimer), unix.TFD_TIMER_ABSTIME, uintptr(unsafe.Pointer(&due)), 0, 0, 0)
}

// event is struct sigevent of the kernel, of 64 bytes; a notify of 0 is SIGEV_SIGNAL.
type event struct {
	value  uintptr
	signal int32
	notify int32
	_      [48]byte
}
