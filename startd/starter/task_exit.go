package starter

import (
	"syscall"

	"github.com/roost-batch/roost/internal/failpoint"
	"github.com/roost-batch/roost/internal/tasktrace"
	"github.com/roost-batch/roost/startd/starter/proto"
)

// onFirstProcessExit collects the status of the first process and begins to clean up
// after it.
func (s *starterProcess) onFirstProcessExit() {
	if s.isRestoring {
		s.onRestored()
		return
	}
	if s.sandboxReport >= 0 {
		if s.onSandboxReport(true); s.pidfd < 0 {
			return // its program was not started, and it is reaped
		}
	} else if s.hasStatus {
		s.reportStarted(true)
	}
	tasktrace.Mark(tasktrace.Exited, s.tracedTask())
	s.closeReport()
	pid := int(s.state.PID)
	s.exit = proto.TaskExit{Cause: s.cause, Reason: s.reason}
	syscall.Kill(-pid, syscall.SIGKILL) // its group, in one call that no fork escapes; reap finds the others
	var status syscall.WaitStatus
	var used syscall.Rusage
	for {
		_, err := syscall.Wait4(pid, &status, 0, &used)
		if err != syscall.EINTR {
			break
		}
	}
	syscall.Close(s.pidfd)
	s.pidfd = -1
	switch {
	case s.hasStatus:
		status = s.status
	case s.startCmd.Sandbox.Wanted:
		status = storedStatus(s.startCmd.IO, status)
	}
	if status.Signaled() {
		s.exit.Signal, s.exit.Core = int32(status.Signal()), status.CoreDump()
	} else {
		s.exit.Code = int32(status.ExitStatus())
	}
	s.addUsage(&used)
	s.reaping = 1
	s.reap()
}

// reap waits for all descendants and kills those that are left. The task has ended only
// when none remains.
func (s *starterProcess) reap() {
	for {
		var used syscall.Rusage
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, &used)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			s.recordExit()
			return
		case pid == 0 && s.server.pid > 0:
			s.recordExit() // only the server is left: the kernel has ended the rest of the sandbox
			return
		case pid == 0:
			s.signalTree(syscall.SIGKILL)
			s.reaping++
			return
		case pid == s.server.pid:
			s.server.pid = serverReaped
		default:
			s.addUsage(&used)
		}
	}
}

// reapOrphans reaps orphaned zombies of the task while its first process runs. It does
// not reap the first process, so that its pid and group number cannot be reused.
func (s *starterProcess) reapOrphans() {
	for _, pid := range children(syscall.Getpid()) {
		if pid == int(s.state.PID) {
			continue
		}
		var used syscall.Rusage
		got, err := syscall.Wait4(pid, nil, syscall.WNOHANG, &used)
		switch {
		case err != nil || got != pid:
		case pid == s.server.pid:
			s.server.pid = serverReaped
		default:
			s.addUsage(&used)
		}
	}
}

func (s *starterProcess) addUsage(used *syscall.Rusage) {
	s.usage.UserCPU += used.Utime.Nano()
	s.usage.SystemCPU += used.Stime.Nano()
	s.usage.MaxRSS = max(s.usage.MaxRSS, used.Maxrss*1024)
}

// recordExit records the end of the task, and then reports it.
func (s *starterProcess) recordExit() {
	s.reaping = 0
	s.exit.Wall = now() - s.state.Since
	s.exit.UserCPU, s.exit.SystemCPU, s.exit.MaxRSS = s.usage.UserCPU, s.usage.SystemCPU, s.usage.MaxRSS
	s.finishTask(s.exit)
}

func (s *starterProcess) finishTask(exit proto.TaskExit) {
	failpoint.Point(failpoint.StarterBeforeExitFile)
	s.state.Phase, s.state.Exit = proto.Ended, exit
	m := &proto.StarterMessage{Type: proto.TypeExited, Attempt: s.state.Attempt, State: s.state}
	if err := s.appendJournal(m); err != 0 {
		logError("journal", err)
	}
	failpoint.Point(failpoint.StarterAfterExitFile)
	tasktrace.Mark(tasktrace.Reaped, s.tracedTask())
	s.send(m)
}

// failTask ends a task that was never started.
func (s *starterProcess) failTask(why startError) { s.finishTask(why.taskExit()) }

// repeatResult repeats the report of a task that was started before. It refuses any
// other.
func (s *starterProcess) repeatResult(a proto.TaskAttempt) {
	m := &proto.StarterMessage{Type: proto.TypeStarted, Attempt: a, State: s.state}
	switch {
	case s.state.Attempt != a:
		m.Type, m.State.Exit = proto.TypeExited, startError{step: proto.Busy, errno: syscall.EBUSY}.taskExit()
	case s.state.Phase == proto.Ended:
		m.Type = proto.TypeExited
	}
	s.send(m)
}

// taskExit converts a start failure to a TaskExit with the cause and a message.
func (f startError) taskExit() proto.TaskExit {
	e := proto.TaskExit{Cause: proto.Machine, Step: f.step, Errno: int32(f.errno)}
	switch f.step {
	case proto.EnterCwd, proto.OpenStdin, proto.OpenStdout, proto.OpenStderr, proto.FindProgram, proto.ExecProgram,
		proto.MountDir:
		if !isMachineFault(f.errno) {
			e.Cause = proto.LaunchFailed
		}
	}
	e.Reason = stepMessage[f.step] + f.path + ": " + f.errno.Error()
	if f.step == proto.ExecProgram && f.errno == syscall.ENOENT {
		e.Reason += ": the program, or the interpreter that its first line names"
	}
	return e
}

// stepMessage is indexed by step.
var stepMessage = [...]string{
	proto.Busy:         "another task holds the claim",
	proto.Journal:      "the starter cannot write its journal",
	proto.Credentials:  "the user's rights cannot be taken on",
	proto.EnterCwd:     "cannot enter the working directory ",
	proto.OpenStdin:    "cannot open standard input ",
	proto.OpenStdout:   "cannot open standard output ",
	proto.OpenStderr:   "cannot open standard error ",
	proto.FindProgram:  "cannot find the program ",
	proto.Fork:         "cannot fork",
	proto.ExecProgram:  "cannot execute ",
	proto.VerifyRights: "the program ran with rights that are not the user's, and was killed",
	proto.MakeSandbox:  "the box of the task cannot be made: ",
	proto.FromImage:    "the task cannot be restored: ",
	proto.BindPort:     "cannot listen on port ",
	proto.MountDir:     "cannot mount the directory ",
}

// isMachineFault reports whether another attempt, here or elsewhere, may not have the
// error. From the step the startd decides whether the machine is at fault.
func isMachineFault(e syscall.Errno) bool {
	switch e {
	case syscall.EIO, syscall.ENOMEM, syscall.ENFILE, syscall.EMFILE, syscall.ENOSPC, syscall.ESTALE, syscall.ETXTBSY,
		syscall.EAGAIN:
		return true
	}
	return false
}
