package starter

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// The descriptors of the process that sets up a sandbox.
const (
	startCmdFD      = 3
	sandboxReportFD = 4
)

// launchSandboxed starts the task in namespaces of its own. The forked process is this
// program again, which sets up the sandbox from inside, starts the program there, and
// then becomes roost-init. It reports the outcome through a pipe, on which the starter
// does not block: the user's files may be on a server that does not answer.
func (s *starterProcess) launchSandboxed(o *proto.StartCmd) (pid, pidfd int, why startError) {
	if why = s.stageRoot(o); why.step != proto.StepNone {
		return 0, -1, why
	}
	if why = makeIOFiles(o); why.step != proto.StepNone {
		return 0, -1, why
	}
	order, err := sealedStartCmd(o)
	if err != 0 {
		return 0, -1, startError{proto.MakeSandbox, err, "its order"}
	}
	defer syscall.Close(order)
	var pipe [2]int
	if err := syscall.Pipe2(pipe[:], syscall.O_CLOEXEC); err != nil {
		return 0, -1, startError{proto.MakeSandbox, errno(err), "its report"}
	}
	defer syscall.Close(pipe[1])
	null, e := syscall.Open("/dev/null", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if e != nil {
		return 0, -1, startError{proto.MakeSandbox, errno(e), "/dev/null"}
	}
	defer syscall.Close(null)
	group := "-"
	if s.group.dir != "" && !s.group.canCloneInto() {
		group = s.group.dir
	}
	pid, e = syscall.ForkExec("/proc/self/exe", []string{"roost-starter", "box", s.dir, group}, &syscall.ProcAttr{
		Dir: "/", Env: []string{"GOMAXPROCS=1", "GOGC=off"},
		Files: []uintptr{uintptr(null), uintptr(null), 2, uintptr(order), uintptr(pipe[1])},
		Sys:   s.namespaceFlags(o, &pidfd),
	})
	if e != nil {
		syscall.Close(pipe[0])
		return 0, -1, startError{proto.MakeSandbox, errno(e), "namespaces"}
	}
	if pidfd < 0 {
		syscall.Close(pipe[0])
		killAndReap(pid)
		return 0, -1, startError{proto.Fork, syscall.ENOSYS, ""}
	}
	s.sandboxReport = pipe[0]
	return pid, pidfd, startError{}
}

// namespaceFlags returns the attributes for the sandbox's namespaces. CRIU dumps a
// process of another user only with CAP_SYS_RESOURCE, or in a user namespace that it
// created: so a root without that capability adds a user namespace, in which all ids stay
// the same.
func (s *starterProcess) namespaceFlags(o *proto.StartCmd, pidfd *int) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
		Setsid:     true, PidFD: pidfd,
		UseCgroupFD: s.group.canCloneInto(), CgroupFD: s.group.fd,
	}
	if o.UID != 0 && !hasCapability(unix.CAP_SYS_RESOURCE) {
		everybody := []syscall.SysProcIDMap{{Size: 1<<32 - 1}}
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings, attr.GidMappings, attr.GidMappingsEnableSetgroups = everybody, everybody, true
	}
	return attr
}

// hasCapability reports whether this process has an effective capability.
func hasCapability(which uint) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&header, &data[0]) == nil && data[which/32].Effective>>(which%32)&1 == 1
}

// sealedStartCmd returns a memory file that contains the command.
func sealedStartCmd(o *proto.StartCmd) (int, syscall.Errno) {
	fd, err := unix.MemfdCreate("order", unix.MFD_CLOEXEC)
	if err != nil {
		return 0, errno(err)
	}
	text := proto.AppendFrame(nil, &proto.StarterMessage{Type: proto.TypeStart, Start: *o})
	for at := 0; at < len(text); {
		n, err := syscall.Pwrite(fd, text[at:], int64(at))
		if err != nil {
			syscall.Close(fd)
			return 0, errno(err)
		}
		at += n
	}
	return fd, 0
}

// makeIOFiles creates the files in the attempt's directory that the sandbox needs. An
// attempt that resumes from a checkpoint has them already.
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
	path := o.IO + "/" + proto.StatusFile
	fd, err := syscall.Open(path, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_TRUNC|syscall.O_NOFOLLOW|syscall.O_CLOEXEC,
		0o600)
	if err == nil {
		_, err = syscall.Write(fd, []byte{0xff, 0xff, 0xff, 0xff})
		syscall.Close(fd)
	}
	if err != nil {
		return startError{proto.MakeSandbox, errno(err), path}
	}
	return startError{}
}

// programStatus returns the wait status of the program, which roost-init has written. If
// roost-init was killed before, the program was killed with it and has the same status.
func programStatus(io string, box syscall.WaitStatus) syscall.WaitStatus {
	text := readAll(io + "/" + proto.StatusFile)
	if len(text) != 4 || text[0]&text[1]&text[2]&text[3] == 0xff {
		return box
	}
	return syscall.WaitStatus(uint32(text[0]) | uint32(text[1])<<8 | uint32(text[2])<<16 | uint32(text[3])<<24)
}

// onSandboxReport handles the outcome of the sandbox's setup. An empty report means that
// the process was killed.
func (s *starterProcess) onSandboxReport() {
	var text [4096]byte
	n, err := syscall.Read(s.sandboxReport, text[:])
	if err == syscall.EINTR {
		return
	}
	s.closeReport()
	var m proto.StarterMessage
	if body, _, ok := proto.SplitFrame(text[:max(n, 0)]); ok && body != nil {
		m, _ = proto.DecodeBody(body)
	}
	switch {
	case m.Type == proto.TypeStarted:
		s.reportStarted()
		s.deliverPending()
	case s.stopping: // it was killed, and the cause is known
	default:
		why := startError{proto.MakeSandbox, syscall.EIO, "it ended before it was ready"}
		if m.Type == proto.TypeExited {
			why = startError{m.State.Exit.Step, syscall.Errno(m.State.Exit.Errno), m.State.Exit.Reason}
		}
		s.abandonTask(why.taskExit())
	}
}

func (s *starterProcess) closeReport() {
	if s.sandboxReport >= 0 {
		syscall.Close(s.sandboxReport)
		s.sandboxReport = -1
	}
}

// abandonTask ends a task that has processes but never ran its program.
func (s *starterProcess) abandonTask(exit proto.TaskExit) {
	s.exit = exit
	s.killed = true
	killAndReap(int(s.state.PID))
	syscall.Close(s.pidfd)
	s.pidfd, s.reaping = -1, 1
	s.reap()
}
