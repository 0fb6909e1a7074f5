package starter

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// taskCgroup is the cgroup in which tasks are created, frozen and killed. The starter is
// not in it: it must continue to run.
type taskCgroup struct {
	dir      string
	fd       int  // of the directory, for clone3(2); -1: no group, or one of version 1
	version1 bool // freezer of cgroup version 1, which each task must enter itself
	killed   bool // cgroup.kill was used
}

// canCloneInto reports whether tasks can be created in the group. Since version 6.15
// Linux kills each process cloned into a group whose cgroup.kill was ever used, because
// it compares the group's count of kills with that of the parent's group. The task enters
// such a group itself, as with version 1.
func (g *taskCgroup) canCloneInto() bool { return g.fd >= 0 && g.dir != "" && !g.version1 && !g.killed }

// open opens the group's directory; "-" is none.
func (g *taskCgroup) open(dir string) syscall.Errno {
	if dir == "-" {
		return 0
	}
	g.dir = dir
	if unix.Access(dir+"/cgroup.freeze", unix.F_OK) != nil {
		g.version1 = true
		return errno(unix.Access(dir+"/freezer.state", unix.F_OK))
	}
	fd, err := syscall.Open(dir, unix.O_PATH|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	g.fd = fd
	return errno(err)
}

// freeze freezes or thaws every process of the group at once. It reports whether that
// succeeded.
func (g *taskCgroup) freeze(on bool) bool {
	if g.version1 && on {
		return g.freezeVersion1()
	}
	name, text := "/cgroup.freeze", [2]string{"0", "1"}
	if g.version1 {
		name, text = "/freezer.state", [2]string{"THAWED", "FROZEN"}
	}
	value := text[0]
	if on {
		value = text[1]
	}
	return g.dir != "" && writeFile(g.dir+name, value) == 0
}

// freezeVersion1 freezes a group of version 1. A process that waits for its child to exec
// can block the freeze for ever, if the child is frozen before its exec. In that case it
// thaws the group for a moment and tries again.
func (g *taskCgroup) freezeVersion1() bool {
	for range freezeTries {
		if writeFile(g.dir+"/freezer.state", "FROZEN") != 0 {
			return false
		}
		for range 3 {
			if state := readAll(g.dir + "/freezer.state"); len(state) > 3 && state[3] == 'Z' { // FROZEN, not FREEZING
				return true
			}
			unix.Poll(nil, 1)
		}
		writeFile(g.dir+"/freezer.state", "THAWED")
		unix.Poll(nil, 1)
	}
	return false
}

// freezeTries is the number of attempts.
const freezeTries = 50

// kill sends SIGKILL to every process of the group in one call that no fork escapes
// (Linux 5.14).
func (g *taskCgroup) kill() {
	if g.fd >= 0 {
		g.killed = true
		writeFile(g.dir+"/cgroup.kill", "1")
	}
}

// processes lists the processes of the group itself.
func (g *taskCgroup) processes() []int {
	fd, err := syscall.Open(g.dir+"/cgroup.procs", syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer syscall.Close(fd)
	return parseNumbers(readOpen(fd))
}

// writeFile writes a text into an existing file.
func writeFile(path, text string) syscall.Errno {
	fd, err := syscall.Open(path, syscall.O_WRONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return errno(err)
	}
	defer syscall.Close(fd)
	_, err = syscall.Write(fd, []byte(text))
	return errno(err)
}

// thawVersion1 thaws the parent directory of a version 1 group, which the startd may have
// frozen.
func (g *taskCgroup) thawVersion1() {
	dir := g.dir
	for len(dir) > 1 && dir[len(dir)-1] != '/' {
		dir = dir[:len(dir)-1]
	}
	writeFile(dir+"freezer.state", "THAWED")
}

// suspendTask suspends the task, unless its startd has done so. Its walltime pauses
// meanwhile, but its lease does not.
func (s *starterProcess) suspendTask(done bool) {
	if s.suspended {
		return
	}
	s.suspended = true
	s.pauseWalltime(done || s.group.freeze(true))
}

// setFrozen freezes or thaws the task and later ones. With a cgroup the startd does the
// actual freezing.
func (s *starterProcess) setFrozen(on bool) {
	if s.frozen == on {
		return
	}
	s.frozen = on
	switch {
	case s.state.Phase != proto.Running:
	case on:
		s.pauseWalltime(s.group.dir != "")
	default:
		s.resumeWalltime(s.group.dir != "")
	}
}

// pauseWalltime records when the suspension began. It stops the processes unless their
// group is frozen.
func (s *starterProcess) pauseWalltime(done bool) {
	if s.pausedSince == 0 {
		s.pausedSince = now()
	}
	if !done {
		s.signalTree(syscall.SIGSTOP)
	}
}

// resumeTask resumes a suspended task, unless the claim is frozen.
func (s *starterProcess) resumeTask() {
	if !s.suspended {
		return
	}
	s.suspended = false
	s.resumeWalltime(s.group.freeze(false))
}

// resumeWalltime resumes the walltime unless the task is still to be suspended or frozen.
// It resumes the processes as well unless their group did.
func (s *starterProcess) resumeWalltime(done bool) {
	if s.pausedSince == 0 || s.suspended || s.frozen {
		return
	}
	suspendedFor := now() - s.pausedSince
	if s.suspendedTotal += suspendedFor; s.walltime != 0 {
		s.walltime += suspendedFor
	}
	s.pausedSince = 0
	if !done {
		s.signalTree(syscall.SIGCONT)
	}
	if s.startCmd.Sandbox.Wanted && s.pidfd >= 0 && !s.isRestoring {
		// init sets its parent-death signal again: whoever froze the task may have
		// cleared it
		unix.PidfdSendSignal(s.pidfd, syscall.SIGUSR1, nil, 0)
	}
}
