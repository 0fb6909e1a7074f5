package starter

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/internal/failpoint"
	"github.com/roost-batch/roost/internal/tasktrace"
	"github.com/roost-batch/roost/startd/starter/proto"
)

// startError is the reason why a task could not be started.
type startError struct {
	step  proto.StartStep
	errno syscall.Errno
	path  string
}

// startTask starts a task or reports why it cannot. It answers a repeated command with
// the current state.
func (s *starterProcess) startTask(o *proto.StartCmd) {
	if s.state.Phase != proto.Idle {
		s.repeatResult(o.Attempt)
		return
	}
	if o.Lease > 0 {
		s.renewLease(o.Lease, 0)
	}
	began := now()
	s.state = proto.StarterState{Phase: proto.Running, Attempt: o.Attempt, Since: began, Starter: s.state.Starter}
	s.stopping, s.killed, s.cause, s.reason, s.killAt, s.walltime, s.pausedSince, s.isRestoring = false, false,
		proto.Exited, "", 0, 0, 0, false
	s.stopSignal, s.pendingSignals, s.suspended, s.suspendedTotal = 0, 0, false, 0
	s.isEndSignalled = false
	s.startCmd, s.usage, s.hasStatus = *o, proto.TaskExit{}, false
	begun := &proto.StarterMessage{Type: proto.TypeStarted, Attempt: o.Attempt, State: s.state}
	// before the fork: a reader of the journal must never conclude that the task was not
	// started
	if err := s.appendJournal(begun); err != 0 {
		s.failTask(startError{step: proto.Journal, errno: err})
		return
	}
	changed, why := s.sockets.bind(o)
	if why.step != proto.StepNone {
		s.failTask(why)
		return
	}
	if changed {
		s.stopServer() // it has those that were bound before
	}
	failpoint.Point(failpoint.StarterBeforeFork)
	tasktrace.Mark(tasktrace.Forking, s.tracedTask())
	s.setForkDeadline()
	var pid, pidfd int
	pid, pidfd, why = s.launchTask(o)
	s.armLeaseTimers()
	if why.step != proto.StepNone {
		s.failTask(why)
		return
	}
	failpoint.Point(failpoint.StarterAfterFork)
	tasktrace.Mark(tasktrace.Forked, s.tracedTask())
	s.state.PID, s.pidfd = int64(pid), pidfd
	if o.Walltime > 0 {
		s.walltime = began + o.Walltime
	}
	if s.frozen { // the startd starts nothing in a frozen claim, but may not have known yet
		s.pauseWalltime(s.group.dir != "")
	}
	s.startCmd.Arguments, s.startCmd.Environment = nil, nil
	if s.sandboxReport < 0 && !s.isRestoring {
		s.reportStarted(false)
	}
}

// oomScore is the starter's own OOM score, which its children inherit. The zero value
// has not been opened yet.
type oomScore struct {
	fd  int
	own []byte
}

// raise sets the OOM score for the processes forked from now on, until restore restores
// the starter's own. A task of a root starter cannot lower its score again.
func (m *oomScore) raise(score int32) {
	if score <= 0 || score > maxOOMScore {
		return
	}
	if m.fd == 0 {
		fd, err := syscall.Open("/proc/thread-self/oom_score_adj", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
		if err != nil {
			return
		}
		m.fd, m.own = fd, readOpen(fd)
	}
	syscall.Pwrite(m.fd, []byte(itoa(int(score))), 0)
}

func (m *oomScore) restore(score int32) {
	if score > 0 && score <= maxOOMScore && m.fd > 0 {
		syscall.Pwrite(m.fd, m.own, 0)
	}
}

// maxOOMScore is the highest score (proc(5), /proc/pid/oom_score_adj).
const maxOOMScore = 1000

// tracedTask is the current task in a trace.
func (s *starterProcess) tracedTask() tasktrace.Task {
	return tasktrace.Task{Job: s.state.Attempt.Job, Index: s.state.Attempt.Index, Attempt: s.state.Attempt.Number}
}

// reportStarted reports that the task's program runs, or has run if the task has ended.
// It records that of a task that runs.
func (s *starterProcess) reportStarted(ended bool) {
	tasktrace.Mark(tasktrace.Boxed, s.tracedTask())
	begun := &proto.StarterMessage{Type: proto.TypeStarted, Attempt: s.state.Attempt, State: s.state}
	if !ended {
		if err := s.appendJournal(begun); err != 0 {
			logError("journal", err)
		}
	}
	s.send(begun)
}

// launchTask forks the task: from a checkpoint image, in a sandbox, or directly.
func (s *starterProcess) launchTask(o *proto.StartCmd) (pid, pidfd int, why startError) {
	own := o.UID == uint32(syscall.Geteuid())
	switch {
	case !own && !isAllRoot():
		return 0, -1, startError{step: proto.Credentials, errno: syscall.EPERM}
	case o.Sandbox.Wanted && len(o.Restore.Helper) == 0:
		return s.launchSandboxed(o)
	}
	s.stopServer()
	s.oomScore.raise(o.OOMScore)
	defer s.oomScore.restore(o.OOMScore)
	if len(o.Restore.Helper) > 0 {
		return s.startRestore(o)
	}
	var files [3]int
	defer func() {
		for _, fd := range files {
			if fd > 0 {
				syscall.Close(fd)
			}
		}
	}()
	if why = openCaptured(o, &files); why.step != proto.StepNone {
		return 0, -1, why
	}
	syscall.Umask(int(o.Umask & 0o777))
	var program string
	if own {
		program, why = prepareFiles(o, &files)
	} else {
		program, why = prepareAs(o, &files)
	}
	if why.step != proto.StepNone {
		return 0, -1, why
	}
	addListenVariables(o, 0) // the process itself knows its pid
	return forkTask(o, program, &files, s.group, s.sockets)
}

// forkTask starts the program. In the child, package syscall sets the user's ids before
// it changes the directory, and any failure on the way makes ForkExec fail.
func forkTask(o *proto.StartCmd, program string, files *[3]int, g taskCgroup,
	sockets claimSockets) (pid, pidfd int, why startError) {
	attr := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, PidFD: &pidfd,
		UseCgroupFD: g.canCloneInto(), CgroupFD: g.fd}
	foreign := o.UID != uint32(syscall.Geteuid())
	if foreign {
		attr.Credential = &syscall.Credential{Uid: o.UID, Gid: o.GID, Groups: o.Groups}
	}
	stderr := files[2]
	if o.Join {
		stderr = files[1]
	}
	how := &syscall.ProcAttr{
		Dir: o.Cwd, Env: environment(o), Files: []uintptr{uintptr(files[0]), uintptr(files[1]), uintptr(stderr)},
		Sys: attr,
	}
	arguments, bound, e := newRlimitPipe(o, &program, how, sockets)
	if e != 0 {
		return 0, -1, startError{proto.Fork, e, ""}
	}
	defer bound.close()
	pid, err := syscall.ForkExec(program, arguments, how)
	for tries := 0; err == syscall.ETXTBSY && tries < 50; tries++ {
		// A process that wrote the program was forking at that moment, and its child has
		// not closed its copy of the descriptor yet.
		unix.Poll(nil, 2)
		pid, err = syscall.ForkExec(program, arguments, how)
	}
	switch e := errno(err); {
	case e == syscall.EAGAIN || e == syscall.ENOMEM:
		return 0, -1, startError{proto.Fork, e, ""}
	case e != 0:
		return 0, -1, startError{proto.ExecProgram, e, program}
	}
	if pidfd < 0 {
		killAndReap(pid)
		return 0, -1, startError{proto.Fork, syscall.ENOSYS, ""}
	}
	if foreign && !hasRights(pid, o) {
		killAndReap(pid)
		syscall.Close(pidfd)
		return 0, -1, startError{proto.VerifyRights, syscall.EPERM, ""}
	}
	if e, program := bound.awaitExec(); e != 0 {
		killAndReap(pid)
		syscall.Close(pidfd)
		return 0, -1, startError{proto.ExecProgram, e, program}
	}
	return pid, pidfd, startError{}
}

// environment returns a list that is never nil: package syscall would take nil for our
// own environment.
func environment(o *proto.StartCmd) []string {
	if o.Environment == nil {
		return []string{}
	}
	return o.Environment
}

func killAndReap(pid int) {
	syscall.Kill(pid, syscall.SIGKILL) // it is our child and not reaped: the number cannot be reused
	for {
		if _, err := syscall.Wait4(pid, nil, 0, nil); err != syscall.EINTR {
			return
		}
	}
}
