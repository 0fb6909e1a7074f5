package starter

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// starterProcess is the whole state of a starter. Deadlines are nanoseconds of
// CLOCK_BOOTTIME, 0 for none.
type starterProcess struct {
	dir            string
	journal        int // descriptor
	written        int // bytes in the journal
	conn           int // descriptor of the connection, or -1
	input          []byte
	state          proto.StarterState
	startCmd       proto.StartCmd
	pidfd          int // of the task's first process, or -1
	lease          int64
	walltime       int64
	suspendedTotal int64       // total time, in ns, for which the task was suspended so far
	killAt         int64       // end of the notice
	timer          int         // descriptor
	timerDeadline  int64       // deadline for which timer is set
	wakeTimer      kernelTimer // see kernel_timer.go
	killTimer      kernelTimer
	killed         bool           // SIGKILL was sent
	stopping       bool           // the task is being ended; cause is the first one
	stopSignal     syscall.Signal // signal for ending the task; 0: SIGTERM to all its processes
	pendingSignals uint64         // signals from before the program started, bit n-1 for number n
	cause          proto.EndCause
	reason         string
	release        bool
	group          taskCgroup
	rootStaged     bool               // the root of sandboxes is staged
	devices        []proto.DeviceNode // the claim's devices in the staged root
	// descriptor of the sandbox's report; -1 after the report, or without a sandbox
	sandboxReport int
	isRestoring   bool  // the first process is the helper that restores the task
	suspended     bool  // the task itself is to be suspended
	frozen        bool  // the whole claim is to be frozen
	pausedSince   int64 // when the task was suspended or frozen; 0: it is running
	// after the end of the first process, while its descendants have not ended: how often
	// they were killed; 0 otherwise
	reaping            int
	exit               proto.TaskExit // as far as known while reaping
	usage              proto.TaskExit // CPU time and memory of the processes reaped so far
	needsMemoryRelease bool           // something was done since memory was last released
}

func now() int64 {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_BOOTTIME, &t)
	return t.Nano()
}

// run runs the loop until the claim is released or its lease has expired.
func (s *starterProcess) run() {
	for !s.isDone() {
		s.armTimer()
		wait := -1
		if s.reaping > 0 {
			wait = min(s.reaping, 100) // processes that do not die at once are checked at growing intervals
		} else if s.needsMemoryRelease {
			wait = memoryReleaseDelay
		}
		fds := [5]unix.PollFd{
			{Fd: listenerFD, Events: unix.POLLIN}, {Fd: int32(s.conn), Events: unix.POLLIN},
			{Fd: int32(s.pidfd), Events: unix.POLLIN},
			{Fd: int32(s.timer), Events: unix.POLLIN}, {Fd: int32(s.sandboxReport), Events: unix.POLLIN},
		}
		n, err := unix.Poll(fds[:], wait)
		if err != nil {
			fds = [5]unix.PollFd{}
		}
		if s.releaseMemory(n == 0 && s.reaping == 0) {
			continue
		}
		if err == unix.EINTR && s.pidfd >= 0 {
			s.reapOrphans()
		}
		if fds[4].Revents != 0 {
			s.onSandboxReport()
		} else if fds[2].Revents != 0 {
			s.onFirstProcessExit()
		} else if s.reaping > 0 {
			s.reap()
		}
		if fds[0].Revents != 0 {
			s.accept()
		} else if fds[1].Revents != 0 {
			s.receive()
		}
		s.handleDeadlines()
	}
}

// isDone reports whether the starter may exit: released, or without a lease, and no task
// runs.
func (s *starterProcess) isDone() bool {
	return s.state.Phase != proto.Running && (s.release || s.lease <= now())
}

// armTimer sets the timer to the next deadline. The timer uses CLOCK_BOOTTIME, because a
// poll timeout does not count while the machine sleeps, and a lease does.
func (s *starterProcess) armTimer() {
	if s.lease <= now() {
		s.armLeaseTimers()
	}
	next := s.lease
	if s.state.Phase == proto.Running && s.pausedSince == 0 {
		for _, t := range [...]int64{s.walltime, s.killAt} {
			if t != 0 && t < next {
				next = t
			}
		}
		if s.killed {
			next = now() + 1e9 // check again whether a fork escaped the signal
		}
	}
	if next == s.timerDeadline {
		return
	}
	s.timerDeadline = next
	due := unix.ItimerSpec{Value: unix.NsecToTimespec(max(next, 1))}
	if err := unix.TimerfdSettime(s.timer, unix.TFD_TIMER_ABSTIME, &due, nil); err != nil {
		exitWithError("timer", errno(err))
	}
}

// noDeadline is a deadline that never comes.
const noDeadline = 1<<63 - 1

// handleDeadlines performs the action that is due.
func (s *starterProcess) handleDeadlines() {
	if s.state.Phase != proto.Running || s.reaping > 0 {
		return
	}
	t := now()
	switch {
	case s.killed:
		if s.timerDeadline <= t {
			s.signalTree(syscall.SIGKILL)
		}
	case s.lease <= t:
		s.stopTask(proto.LeaseOver, "the lease ran out", true, 0, 0)
	case s.pausedSince != 0: // neither counts while it is suspended
	case s.walltime != 0 && s.walltime <= t:
		s.walltime = 0
		s.stopTask(proto.Walltime, s.startCmd.WalltimeReason, false, s.startCmd.Notice, 0)
	case s.killAt != 0 && s.killAt <= t:
		s.killAll()
	}
}

// setWalltime sets a new walltime, counted from the task's start without its suspended
// time. It has no effect on a task that is being ended.
func (s *starterProcess) setWalltime(walltime int64, reason string) {
	if s.stopping {
		return
	}
	s.startCmd.Walltime, s.startCmd.WalltimeReason, s.walltime = walltime, reason, 0
	if walltime > 0 {
		s.walltime = s.state.Since + s.suspendedTotal + walltime
	}
}

// killAll sends SIGKILL to all processes of the task.
func (s *starterProcess) killAll() {
	s.killed = true
	s.signalTree(syscall.SIGKILL)
	if s.isRestoring {
		s.group.kill() // restored processes may not be our descendants yet
	}
	if s.pausedSince != 0 {
		s.group.freeze(false)
	}
	// nothing dies in the version 1 freezer, and the startd may have frozen it without a
	// message
	if s.group.version1 {
		s.group.freeze(false)
		s.group.thawVersion1()
	}
}

// stopTask begins to end the task: with a signal to the program, or, for 0, SIGTERM to
// all its processes. A later command may shorten the time; the cause is that of the
// first.
func (s *starterProcess) stopTask(cause proto.EndCause, reason string, fast bool, notice int64, by syscall.Signal) {
	if s.state.Phase != proto.Running || s.reaping > 0 {
		return
	}
	first := !s.stopping
	if first {
		s.stopping, s.cause, s.reason = true, cause, reason
	}
	if fast || notice <= 0 {
		s.killAll()
		return
	}
	s.resumeTask() // a frozen process would not get the signal
	if deadline := now() + notice; s.killAt == 0 || deadline < s.killAt {
		s.killAt = deadline
	}
	if first {
		s.stopSignal = by
		if s.sandboxReport < 0 { // else there is no program yet to signal
			s.sendTerm()
		}
	}
}

// sendTerm sends the signal that asks the task to end.
func (s *starterProcess) sendTerm() {
	if s.stopSignal != 0 {
		s.signalProgram(s.stopSignal)
	} else {
		s.signalTree(syscall.SIGTERM)
	}
	s.signalTree(syscall.SIGCONT) // a stopped process would not get the signal
}

// deliverPending sends a program that has just started the signals from while its sandbox
// was being set up. The setup may take long, and signals to the sandbox's processes have
// no effect meanwhile: the first process of a PID namespace only gets signals that it
// handles.
func (s *starterProcess) deliverPending() {
	for signal := syscall.Signal(1); s.pendingSignals != 0; signal++ {
		if s.pendingSignals&1 != 0 {
			s.signalProgram(signal)
		}
		s.pendingSignals >>= 1
	}
	switch {
	case s.stopping && !s.killed:
		s.sendTerm()
	case s.suspended:
		s.pauseWalltime(s.group.freeze(true))
	case s.frozen: // its own group is not frozen, and must not be: nobody would thaw it
		s.pauseWalltime(s.group.dir != "")
	}
}

// renewLease sets the lease to end after a time, but not after the instant until; 0 for
// none. A command may be read long after it was sent.
func (s *starterProcess) renewLease(lease, until int64) {
	t := now()
	s.lease = noDeadline
	if lease <= noDeadline-t {
		s.lease = t + lease
	}
	if until > 0 {
		s.lease = min(s.lease, until)
	}
	s.armLeaseTimers()
}
