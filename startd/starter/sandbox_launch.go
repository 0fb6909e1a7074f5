package starter

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// launchSandboxed begins the task in namespaces of its own. Their first process makes
// the sandbox from inside by a list of system calls that is made here, starts the
// program, and then becomes roost-init. How that went it reports through a pipe, for
// which nobody waits here: the user's files may be on a server that does not answer.
func (s *starterProcess) launchSandboxed(o *proto.StartCmd) (pid, pidfd int, why startError) {
	if why = s.stageRoot(&o.Sandbox, o.Sandbox.TempDir == ""); why.step != proto.StepNone {
		return 0, -1, why
	}
	if why = prepareSecrets(s, o); why.step != proto.StepNone {
		return 0, -1, why
	}
	if why = makeIOFiles(o); why.step != proto.StepNone {
		return 0, -1, why
	}
	if why = raiseSetup(s); why.step != proto.StepNone {
		return 0, -1, why
	}
	addListenVariables(o, firstChild)
	pid, pidfd, why = s.launchByServer(o)
	if why.step == proto.StepNone {
		s.reportDue = now() + shortWait*1e6
	}
	return pid, pidfd, why
}

// isWrapped reports whether a task's sandbox has a user namespace, in which everybody has
// the number that he has outside. CRIU dumps a process of another user than its own only
// with CAP_SYS_RESOURCE, or in such a namespace: so a root without that capability wraps
// its users.
func isWrapped(uid uint32) bool { return uid != 0 && !hasCapability(unix.CAP_SYS_RESOURCE) }

// launchByServer has the server of sandboxes create the first process. It makes a new
// server if there is none, or the one that was there has been killed.
func (s *starterProcess) launchByServer(o *proto.StartCmd) (pid, pidfd int, why startError) {
	for range 2 {
		if why = s.startServer(isWrapped(o.UID)); why.step != proto.StepNone {
			return 0, -1, why
		}
		s.steps.listSandbox(&s.server, s.group, o)
		var ended bool
		if pid, why, ended = s.server.create(&s.steps, s.group.canCloneInto()); !ended {
			s.sandboxFailures = s.steps.failuresOnly()
			break
		}
		s.stopServer()
		for _, stray := range children(syscall.Getpid()) { // it may have created one before
			killAndReap(stray)
		}
		if why.errno != syscall.EIO { // it was not killed, and says itself why it ended
			break
		}
	}
	if why.step != proto.StepNone {
		return 0, -1, why
	}
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		killAndReap(pid)
		s.stopServer() // and with it goes a report that nobody has read
		return 0, -1, startError{proto.Fork, errno(err), ""}
	}
	s.sandboxReport = s.server.reports
	return pid, pidfd, startError{}
}

// prepareSandbox makes what the first sandbox of the claim needs, before it is known for
// whom. The user of the order is a guess, and gets no files. What fails here fails again
// when the task starts, and is reported then.
func (s *starterProcess) prepareSandbox(o *proto.StartCmd) {
	if s.state.Phase != proto.Idle || !o.Sandbox.Wanted {
		return
	}
	if why := s.stageRoot(&o.Sandbox, false); why.step != proto.StepNone {
		return
	}
	s.startServer(isWrapped(o.UID))
	o.UID, o.Append = uint32(syscall.Geteuid()), true // what a checkpoint has put there meanwhile stays
	makeIOFiles(o)
}

// sandboxNamespaces are the namespaces that each sandbox has of its own, beside the
// mount namespace that its first process makes.
const sandboxNamespaces = syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS

// forkSetup starts roost-setup, whose descriptors are the files.
func (s *starterProcess) forkSetup(files []uintptr, attr *syscall.SysProcAttr) (pid int, err error) {
	if isNested() {
		attr.AmbientCaps = proto.AllCapabilities()
	}
	return syscall.ForkExec("/proc/self/fd/"+itoa(s.setup), []string{"roost-setup"},
		&syscall.ProcAttr{Dir: "/", Env: []string{}, Files: files, Sys: attr})
}

// hasCapability reports whether this process has a capability in effect.
func hasCapability(which uint) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&header, &data[0]) == nil && data[which/32].Effective>>(which%32)&1 == 1
}

// memoryFile makes a file in memory.
func memoryFile(name string) (int, syscall.Errno) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	return fd, errno(err)
}

// writeAt writes all of a text at an offset of a file.
func writeAt(fd int, text []byte, offset int64) syscall.Errno {
	for at := 0; at < len(text); {
		n, err := syscall.Pwrite(fd, text[at:], offset+int64(at))
		if err != nil {
			return errno(err)
		}
		at += n
	}
	return 0
}

// makeIOFiles makes the files of the attempt's directory that the box needs.
func makeIOFiles(o *proto.StartCmd) startError {
	var files [3]int
	why := openCaptured(o, &files)
	for _, fd := range files {
		if fd > 0 {
			syscall.Close(fd)
		}
	}
	if why.step != proto.StepNone {
		return why
	}
	syscall.Unlink(o.IO + "/" + proto.StatusFile) // of the task before
	return startError{}
}

// storedStatus returns how the program ended. The sandbox has stored the status, or was
// killed with the program before it could.
func storedStatus(io string, sandbox syscall.WaitStatus) syscall.WaitStatus {
	text := readAll(io + "/" + proto.StatusFile)
	if len(text) != 4 || text[0]&text[1]&text[2]&text[3] == 0xff {
		return sandbox
	}
	return syscall.WaitStatus(uint32(text[0]) | uint32(text[1])<<8 | uint32(text[2])<<16 | uint32(text[3])<<24)
}

// onSandboxReport handles the report of a process that makes a sandbox. One that reports
// nothing at all was killed. If the process has ended meanwhile, the start is not
// recorded: the end is, before either is reported.
func (s *starterProcess) onSandboxReport(ended bool) {
	var report [reportSize]byte
	n, err := syscall.Read(s.sandboxReport, report[:])
	if err == syscall.EINTR {
		return
	}
	why, ok := s.sandboxFailures.explain(report[:max(n, 0)])
	s.status, s.hasStatus = reportedEnd(report[:max(n, 0)])
	s.closeReport()
	switch {
	case s.hasStatus && !ended: // it is about to
	case ok && ended:
		s.reportStarted(true)
	case ok:
		s.reportStarted(false)
		s.deliverPending()
	case s.stopping: // it was killed, and by whom is known
	default:
		s.abandonTask(why.taskExit())
	}
}

// closeReport forgets the report. It closes its pipe unless that is the server's.
func (s *starterProcess) closeReport() {
	if s.sandboxReport >= 0 && (s.server.pid == 0 || s.sandboxReport != s.server.reports) {
		syscall.Close(s.sandboxReport)
	}
	s.sandboxReport, s.sandboxFailures = -1, sandboxFailures{}
}

// abandonTask ends a task of which there are processes, and that never came to run its
// program.
func (s *starterProcess) abandonTask(exit proto.TaskExit) {
	s.exit = exit
	s.killed = true
	killAndReap(int(s.state.PID))
	syscall.Close(s.pidfd)
	s.pidfd, s.reaping = -1, 1
	s.reap()
}
