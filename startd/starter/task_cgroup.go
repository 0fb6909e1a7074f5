package starter

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// taskCgroup is the cgroup that tasks are born in and frozen and killed by. The starter
// itself is not in it: it has to go on.
type taskCgroup struct {
	dir      string
	fd       int  // of the directory, for clone3(2); -1: there is no group, or it is one of version 1
	version1 bool // it is of version 1, the freezer: a task has to enter it by itself
	killed   bool // kill was used
}

// canCloneInto reports whether tasks can be born in the group. Linux from 6.15 on kills
// whatever is cloned into a group in which cgroup.kill was ever used, because it compares
// the count of kills with that of the parent's group; such a group is entered as one of
// version 1 is.
func (g *taskCgroup) canCloneInto() bool { return g.fd >= 0 && g.dir != "" && !g.version1 && !g.killed }

// open takes on the group's directory; "-" is none.
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

// enterVersion1 moves the calling process into a group of version 1.
func enterVersion1(dir string) syscall.Errno { return writeFile(dir+"/cgroup.procs", "0") }

// freeze stops every process of the group at once, or lets them go on. It reports whether
// it could.
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
// can keep the group half frozen for ever, if the child stands still before it has: then
// all go on for a moment, and it is tried again.
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

// freezeTries is how often.
const freezeTries = 50

// kill sends SIGKILL to every process of the group in one call that no fork escapes
// (Linux 5.14).
func (g *taskCgroup) kill() {
	if g.fd >= 0 {
		g.killed = true
		writeFile(g.dir+"/cgroup.kill", "1")
	}
}

// writeFile writes a text into a file that is there.
func writeFile(path, text string) syscall.Errno {
	fd, err := syscall.Open(path, syscall.O_WRONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return errno(err)
	}
	defer syscall.Close(fd)
	_, err = syscall.Write(fd, []byte(text))
	return errno(err)
}

// thawVersion1 lets a group of version 1 go on that its startd holds by the directory
// above.
func (g *taskCgroup) thawVersion1() {
	dir := g.dir
	for len(dir) > 1 && dir[len(dir)-1] != '/' {
		dir = dir[:len(dir)-1]
	}
	writeFile(dir+"freezer.state", "THAWED")
}

// suspendTask stops the task where it is, unless its startd has done so. Its walltime
// stands still meanwhile, its lease does not.
func (s *starterProcess) suspendTask(done bool) {
	if s.suspended {
		return
	}
	s.suspended = true
	s.pauseWalltime(done || s.group.freeze(true))
}

// setFrozen stops whatever runs here, and so what is started later: in a group the startd
// has seen to that.
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

// pauseWalltime notes since when the task stands still, and stops it if its group does
// not.
func (s *starterProcess) pauseWalltime(done bool) {
	if s.pausedSince == 0 {
		s.pausedSince = now()
	}
	if !done {
		s.signalTree(syscall.SIGSTOP)
	}
}

// resumeTask lets it go on, unless all here is held.
func (s *starterProcess) resumeTask() {
	if !s.suspended {
		return
	}
	s.suspended = false
	s.resumeWalltime(s.group.freeze(false))
}

// resumeWalltime lets the walltime go on, if nobody wants the task to stand still any
// more, and the task too if its group does not.
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
		// it dies with us again: whoever froze it may have undone that
		unix.PidfdSendSignal(s.pidfd, syscall.SIGUSR1, nil, 0)
	}
}
