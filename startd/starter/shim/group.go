package shim

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// group is the cgroup that tasks are born in and frozen and killed by. The starter itself is not in it: it has to go on.
type group struct {
	dir   string
	fd    int  // of the directory, for clone3(2); -1: there is no group, or it is one of version 1
	first bool // it is of version 1, the freezer: a task has to enter it by itself
	shot  bool // kill was used
}

// bears reports whether tasks can be born in the group. Linux from 6.15 on kills whatever is cloned into a group in which cgroup.kill was ever
// used, because it compares the count of kills with that of the parent's group; such a group is entered as one of version 1 is.
func (g *group) bears() bool { return g.fd >= 0 && g.dir != "" && !g.first && !g.shot }

// open takes on the group's directory; "-" is none.
func (g *group) open(dir string) syscall.Errno {
	if dir == "-" {
		return 0
	}
	g.dir = dir
	if unix.Access(dir+"/cgroup.freeze", unix.F_OK) != nil {
		g.first = true
		return errno(unix.Access(dir+"/freezer.state", unix.F_OK))
	}
	fd, err := syscall.Open(dir, unix.O_PATH|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	g.fd = fd
	return errno(err)
}

// enter moves the calling process into a group of version 1.
func enter(dir string) syscall.Errno { return writeFile(dir+"/cgroup.procs", "0") }

// freeze stops every process of the group at once, or lets them go on. It reports whether it could.
func (g *group) freeze(on bool) bool {
	if g.first && on {
		return g.freezeFirst()
	}
	name, text := "/cgroup.freeze", [2]string{"0", "1"}
	if g.first {
		name, text = "/freezer.state", [2]string{"THAWED", "FROZEN"}
	}
	value := text[0]
	if on {
		value = text[1]
	}
	return g.dir != "" && writeFile(g.dir+name, value) == 0
}

// freezeFirst freezes a group of version 1. A process that waits for its child to exec can keep the group half frozen for ever, if the child
// stands still before it has: then all go on for a moment, and it is tried again.
func (g *group) freezeFirst() bool {
	for range tries {
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

// tries is how often.
const tries = 50

// kill sends SIGKILL to every process of the group in one call that no fork escapes (Linux 5.14).
func (g *group) kill() {
	if g.fd >= 0 {
		g.shot = true
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

// unhold lets a group of version 1 go on that its startd holds by the directory above.
func (g *group) unhold() {
	dir := g.dir
	for len(dir) > 1 && dir[len(dir)-1] != '/' {
		dir = dir[:len(dir)-1]
	}
	writeFile(dir+"freezer.state", "THAWED")
}

// suspend stops the task where it is, unless its startd has done so. Its walltime stands still meanwhile, its lease does not.
func (s *starter) suspend(done bool) {
	if s.suspended {
		return
	}
	s.suspended = true
	s.pause(done || s.group.freeze(true))
}

// hold stops whatever runs here, and so what is started later: in a group the startd has seen to that.
func (s *starter) hold(on bool) {
	if s.held == on {
		return
	}
	s.held = on
	switch {
	case s.state.Phase != proto.Running:
	case on:
		s.pause(s.group.dir != "")
	default:
		s.proceed(s.group.dir != "")
	}
}

// pause notes since when the task stands still, and stops it if its group does not.
func (s *starter) pause(done bool) {
	if s.paused == 0 {
		s.paused = now()
	}
	if !done {
		s.signalTree(syscall.SIGSTOP)
	}
}

// resume lets it go on, unless all here is held.
func (s *starter) resume() {
	if !s.suspended {
		return
	}
	s.suspended = false
	s.proceed(s.group.freeze(false))
}

// proceed lets the walltime go on, if nobody wants the task to stand still any more, and the task too if its group does not.
func (s *starter) proceed(done bool) {
	if s.paused == 0 || s.suspended || s.held {
		return
	}
	stood := now() - s.paused
	if s.stood += stood; s.walltime != 0 {
		s.walltime += stood
	}
	s.paused = 0
	if !done {
		s.signalTree(syscall.SIGCONT)
	}
	if s.order.Box.Wanted && s.pidfd >= 0 && !s.helper {
		unix.PidfdSendSignal(s.pidfd, syscall.SIGUSR1, nil, 0) // it dies with us again: whoever froze it may have undone that
	}
}
