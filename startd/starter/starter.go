package starter

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// starterProcess is all there is to know. Deadlines are nanoseconds of CLOCK_BOOTTIME, 0
// for none.
type starterProcess struct {
	dir            string
	journal        int // descriptor
	written        int // bytes in the journal
	conn           int // descriptor of the connection, or -1
	input          []byte
	output         []byte // messages for it, see flushOutput
	state          proto.StarterState
	startCmd       proto.StartCmd
	pidfd          int // of the task's first process, or -1
	lease          int64
	walltime       int64
	isEndSignalled bool        // the signal before the end of the walltime was sent, or is not wanted
	suspendedTotal int64       // how long the task has stood still, until it last went on
	killAt         int64       // when the notice is over
	timer          int         // descriptor
	timerDeadline  int64       // what it is set to
	wakeTimer      kernelTimer // see kernel_timer.go
	killTimer      kernelTimer
	killed         bool           // SIGKILL was sent
	stopping       bool           // the end was ordered, by whatever cause; the first cause stands
	stopSignal     syscall.Signal // with which it was; 0: SIGTERM to all there is
	pendingSignals uint64         // signals that came before there was a program, bit n-1 for number n
	cause          proto.EndCause
	reason         string
	release        bool
	group          taskCgroup
	mounts         stagedMounts       // in the root of boxes
	devices        []proto.DeviceNode // that are in it, beside those that everybody has
	// descriptor of the report on how a sandbox was made; -1: there is none, or it was
	// read
	sandboxReport   int
	reportDue       int64           // when it is read at the latest, see reportDelay
	sandboxFailures sandboxFailures // what its reports mean
	steps           syscallList     // of the last task
	// how the program ended, if the report said it
	status      syscall.WaitStatus
	hasStatus   bool
	sockets     claimSockets // that listen on the claim's ports
	setup       int          // descriptor of roost-setup, once the root of boxes is there
	oomScore    oomScore
	server      sandboxServer
	secrets     taskSecrets
	isRestoring bool  // the first process is the helper that restores the task
	suspended   bool  // the task is to stand still, by itself
	frozen      bool  // whatever runs here is
	pausedSince int64 // since when it does; 0: it does not
	// the first process has ended, its descendants not yet: how often they were killed; 0
	// for not now
	reaping            int
	exit               proto.TaskExit // as far as it is known while reaping
	usage              proto.TaskExit // processor time and memory of what was reaped so far
	needsMemoryRelease bool           // something was done since memory was given back
}

func now() int64 {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_BOOTTIME, &t)
	return t.Nano()
}

// run goes on until the claim is released or its lease has run out.
func (s *starterProcess) run() {
	for !s.isDone() {
		s.flushOutput()
		s.armTimer()
		wait, report, delay := -1, s.sandboxReport, reportDelay(s.sandboxReport, s.reportDue)
		if s.reaping > 0 {
			wait = min(s.reaping, 100) // what does not die at once is looked at ever more seldom
		} else if s.needsMemoryRelease {
			wait = memoryReleaseDelay
		}
		if delay > 0 {
			wait, report = delay, -1
		}
		fds := [5]unix.PollFd{
			{Fd: listenerFD, Events: unix.POLLIN}, {Fd: int32(s.conn), Events: unix.POLLIN},
			{Fd: int32(s.pidfd), Events: unix.POLLIN},
			{Fd: int32(s.timer), Events: unix.POLLIN}, {Fd: int32(report), Events: unix.POLLIN},
		}
		n, err := awaitEvents(fds[:], wait)
		if err != nil {
			fds = [5]unix.PollFd{}
		}
		if s.releaseMemory(n == 0 && s.reaping == 0 && delay == 0) {
			continue
		}
		if err == unix.EINTR && s.pidfd >= 0 && !s.isRestoring { // a restored task may have ended already
			s.reapOrphans()
		}
		if fds[4].Revents != 0 {
			s.onSandboxReport(false)
		} else if fds[2].Revents != 0 {
			s.onFirstProcessExit()
		} else if s.reaping > 0 {
			s.reap()
		}
		if fds[0].Revents != 0 {
			s.accept()
		} else if fds[1].Revents != 0 {
			s.reportDue = 0 // a command may be about the program
			s.receive()
		}
		s.handleDeadlines()
	}
	s.flushOutput()
}

// shortWait is the time, in milliseconds, within which the next event is expected. A
// short task and the next command after it take about as long.
const shortWait = 20

// reportDelay returns for how many milliseconds the starter leaves the report about the
// sandbox unread; 0: it is read now. A short task has ended by then, and the startd hears
// of its start and its end at once: each message of its own wakes four threads on the way
// to the schedd.
func reportDelay(report int, due int64) int {
	if report < 0 || due == 0 {
		return 0
	}
	return int(min(max(due-now()+999_999, 0)/1e6, shortWait))
}

// awaitEvents waits for events, as poll(2) does. It begins with a raw system call: in any
// other the runtime gives this thread's place to another thread after 20 µs, and this one
// waits for it afterwards, though there is nothing else to run.
func awaitEvents(fds []unix.PollFd, wait int) (n int, err error) {
	if wait > shortWait || wait < 0 {
		short := unix.Timespec{Nsec: shortWait * 1e6}
		ready, _, e := syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds[0])), uintptr(len(fds)),
			uintptr(unsafe.Pointer(&short)), 0, 0, 0)
		if e != 0 {
			return 0, e
		}
		if ready > 0 {
			return int(ready), nil
		}
		if wait > 0 {
			wait -= shortWait
		}
	}
	return unix.Poll(fds, wait)
}

// isDone says whether the starter has nothing more to do: released, or without a lease;
// and no task runs.
func (s *starterProcess) isDone() bool {
	return s.state.Phase != proto.Running && (s.release || s.lease <= now())
}

// armTimer sets the timer to the next deadline. It is a timer of CLOCK_BOOTTIME, because
// a timeout of poll's stands still while the machine sleeps, and a lease does not.
func (s *starterProcess) armTimer() {
	if s.lease <= now() {
		s.armLeaseTimers()
	}
	next := s.lease
	if s.state.Phase == proto.Running && s.pausedSince == 0 {
		for _, t := range [...]int64{s.walltime, s.killAt, endSignal{s}.time()} {
			if t != 0 && t < next {
				next = t
			}
		}
		if s.killed {
			next = now() + 1e9 // look again whether something was forked past the signal
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

// noDeadline is the time of a deadline that does not come.
const noDeadline = 1<<63 - 1

// handleDeadlines does what is due.
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
	case endSignal{s}.time() != 0 && endSignal{s}.time() <= t:
		endSignal{s}.send()
	}
}

// setWalltime gives the task another walltime, counted from its start without the time
// that it stood still. One that is on its way out is left alone.
func (s *starterProcess) setWalltime(walltime int64, reason string) {
	if s.stopping {
		return
	}
	s.startCmd.Walltime, s.startCmd.WalltimeReason, s.walltime = walltime, reason, 0
	if walltime > 0 {
		s.walltime = s.state.Since + s.suspendedTotal + walltime
	}
}

// killAll sends SIGKILL to all there is.
func (s *starterProcess) killAll() {
	s.killed = true
	s.signalTree(syscall.SIGKILL)
	if s.isRestoring {
		s.group.kill() // what it has restored already may not be below us
	}
	if s.pausedSince != 0 {
		s.group.freeze(false)
	}
	if s.group.version1 { // in that freezer nothing dies, and its startd may have stopped it without a word to us
		s.group.freeze(false)
		s.group.thawVersion1()
	}
}

// stopTask begins to end the task with a signal to the program. Signal 0 means SIGTERM to
// all its processes. A faster command replaces a slower one; the cause is that of the
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
	s.resumeTask() // a frozen process would not see what it is sent
	if deadline := now() + notice; s.killAt == 0 || deadline < s.killAt {
		s.killAt = deadline
	}
	if first {
		s.stopSignal = by
		if s.sandboxReport < 0 { // else there is no program yet to hear it
			s.sendTerm()
		}
	}
}

// sendTerm tells the task to end.
func (s *starterProcess) sendTerm() {
	if s.stopSignal != 0 {
		s.signalProgram(s.stopSignal)
	} else {
		s.signalTree(syscall.SIGTERM)
	}
	s.signalTree(syscall.SIGCONT) // a stopped process would not see it
}

// deliverPending gives a program that has just begun what it was sent while its box was
// being made. That may take long, and what goes to the box's processes meanwhile reaches
// nobody: the first process of a PID namespace hears only what it wants to.
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
	case s.frozen: // its group is not frozen by itself: nobody would let it go on
		s.pauseWalltime(s.group.dir != "")
	}
}

// renewLease sets the end of the lease, but not after an instant (0: no such bound). A
// command may be read long after it was sent.
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
