package starter

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// startRestore runs a helper that restores the task from a checkpoint image, in the
// sandbox's cgroup. The first process of the sandbox is the helper's child and becomes
// the starter's, as its subreaper, when the helper exits.
func (s *starterProcess) startRestore(o *proto.StartCmd) (pid, pidfd int, why startError) {
	if why = s.stageRoot(&o.Sandbox, o.Sandbox.TempDir == ""); why.step != proto.StepNone {
		return 0, -1, why
	}
	if why = prepareSecrets(s, o); why.step != proto.StepNone {
		return 0, -1, why
	}
	syscall.Unlink(o.Restore.PID)
	in, err := syscall.Open(o.Restore.Input, syscall.O_RDONLY|syscall.O_CLOEXEC|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return 0, -1, startError{proto.FromImage, errno(err), o.Restore.Input}
	}
	defer syscall.Close(in)
	out, err := syscall.Open(o.Restore.Output,
		syscall.O_WRONLY|syscall.O_CREAT|syscall.O_TRUNC|syscall.O_CLOEXEC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return 0, -1, startError{proto.FromImage, errno(err), o.Restore.Output}
	}
	defer syscall.Close(out)
	pid, err = syscall.ForkExec(o.Restore.Helper[0], o.Restore.Helper, &syscall.ProcAttr{
		Dir: "/", Env: []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, Files: []uintptr{uintptr(in), uintptr(out), 2},
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, PidFD: &pidfd,
			UseCgroupFD: s.group.canCloneInto(), CgroupFD: s.group.fd},
	})
	if err != nil {
		return 0, -1, startError{proto.FromImage, errno(err), o.Restore.Helper[0]}
	}
	if s.group.dir != "" && !s.group.canCloneInto() {
		writeFile(s.group.dir+"/cgroup.procs", itoa(pid))
	}
	s.isRestoring = true
	return pid, pidfd, startError{}
}

// onRestored takes over the task from the helper, which has exited.
func (s *starterProcess) onRestored() {
	var status syscall.WaitStatus
	for {
		if _, err := syscall.Wait4(int(s.state.PID), &status, 0, nil); err != syscall.EINTR {
			break
		}
	}
	syscall.Close(s.pidfd)
	s.pidfd, s.isRestoring = -1, false
	pids := parseNumbers(readAll(s.startCmd.Restore.PID))
	good, why := status.Exited() && status.ExitStatus() == 0, ""
	switch {
	case !good:
		why = "its helper ended with status " + itoa(int(status))
	case len(pids) != 1:
		good, why = false, "its helper named no first process"
	case parentOf(pids[0]) != syscall.Getpid():
		good, why = false, "its first process, "+itoa(pids[0])+", has the parent "+itoa(parentOf(pids[0]))
	default:
		fd, err := unix.PidfdOpen(pids[0], 0)
		if good = err == nil; !good {
			why = "its first process, " + itoa(pids[0]) + ", cannot be watched: " + errno(err).Error()
		}
		s.state.PID, s.pidfd = int64(pids[0]), fd
	}
	if good && !s.stopping {
		syscall.Kill(pids[0], syscall.SIGUSR1) // init sets its parent-death signal again
		s.reportStarted(false)
		s.deliverPending()
		s.reapOrphans()
		return
	}
	if s.pidfd >= 0 {
		syscall.Close(s.pidfd)
		s.pidfd = -1
	}
	s.exit = proto.TaskExit{Cause: proto.RestoreFailed, Step: proto.FromImage, Errno: int32(syscall.EIO), Reason: why}
	if s.stopping {
		s.exit = proto.TaskExit{Cause: s.cause, Reason: s.reason, Signal: int32(syscall.SIGKILL)}
	}
	s.killed = true
	s.group.kill()
	s.signalTree(syscall.SIGKILL)
	s.reaping = 1
	s.reap()
}
