package shim

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/internal/fault"
	"github.com/roost-batch/roost/startd/starter/proto"
)

// failure is why a task could not be started.
type failure struct {
	step  proto.Step
	errno syscall.Errno
	path  string
}

// start runs a task, or says why it cannot. The same order twice is answered once more.
func (s *starter) start(o *proto.Order) {
	if s.state.Phase != proto.Idle {
		s.answer(o.Attempt)
		return
	}
	if o.Lease > 0 {
		s.renew(o.Lease, 0)
	}
	began := now()
	s.state = proto.State{Phase: proto.Running, Attempt: o.Attempt, Since: began, Starter: s.state.Starter}
	s.stopping, s.killed, s.cause, s.reason, s.kill, s.walltime, s.paused, s.helper = false, false, proto.Exited, "", 0, 0, 0, false
	s.by, s.owed, s.suspended, s.stood = 0, 0, false, 0
	s.order, s.spent = *o, proto.Exit{}
	begun := &proto.Message{Type: proto.TypeStarted, Attempt: o.Attempt, State: s.state}
	if err := s.record(begun); err != 0 { // before the fork: whoever reads it may never take the task for one that was not begun
		s.failed(failure{step: proto.Journal, errno: err})
		return
	}
	fault.Point(fault.StarterBeforeFork)
	own := expendable(o.Expendable)
	s.setForkDeadline()
	pid, pidfd, why := s.launch(o)
	s.guard()
	dear(own)
	if why.step != proto.NoStep {
		s.failed(why)
		return
	}
	fault.Point(fault.StarterAfterFork)
	s.state.PID, s.pidfd = int64(pid), pidfd
	if o.Walltime > 0 {
		s.walltime = began + o.Walltime
	}
	if s.held { // its startd does not start what would have to stand still at once, but may not have known yet
		s.pause(s.group.dir != "")
	}
	s.order.Arguments, s.order.Environment = nil, nil
	if s.report < 0 && !s.helper {
		s.tellStarted()
	}
}

// expendable says how readily the kernel kills what is forked from now on, when the machine runs out of memory, and returns how it stood before: the
// starter itself is as dear as it was when it has forked (dear). A task of root's starter cannot make itself dearer than it was made.
func expendable(score int32) (own []byte) {
	if score <= 0 || score > 1000 {
		return nil
	}
	own = readAll(oomScore)
	writeFile(oomScore, itoa(int(score)))
	return own
}

func dear(own []byte) {
	if own != nil {
		writeFile(oomScore, string(own))
	}
}

const oomScore = "/proc/thread-self/oom_score_adj"

// tellStarted writes down and tells that the task's program runs.
func (s *starter) tellStarted() {
	begun := &proto.Message{Type: proto.TypeStarted, Attempt: s.state.Attempt, State: s.state}
	if err := s.record(begun); err != 0 {
		complain("journal", err)
	}
	s.send(begun)
}

// launch forks the task: from an image, in a box, or as it is.
func (s *starter) launch(o *proto.Order) (pid, pidfd int, why failure) {
	own := o.UID == uint32(syscall.Geteuid())
	switch {
	case !own && !allRoot():
		return 0, -1, failure{step: proto.Credentials, errno: syscall.EPERM}
	case len(o.Restore.Helper) > 0:
		return s.restore(o)
	case o.Box.Wanted:
		return s.box(o)
	}
	var files [3]int
	defer func() {
		for _, fd := range files {
			if fd > 0 {
				syscall.Close(fd)
			}
		}
	}()
	if why = openCaptured(o, &files); why.step != proto.NoStep {
		return 0, -1, why
	}
	syscall.Umask(int(o.Umask & 0o777))
	var program string
	if own {
		program, why = prepare(o, &files)
	} else {
		program, why = prepareAs(o, &files)
	}
	if why.step != proto.NoStep {
		return 0, -1, why
	}
	return fork(o, program, &files, s.group)
}

// fork starts the program. In the child, package syscall takes on the user's ids before it changes into the directory, and any failure on
// the way is the failure of the whole.
func fork(o *proto.Order, program string, files *[3]int, g group) (pid, pidfd int, why failure) {
	attr := &syscall.SysProcAttr{Setsid: true, PidFD: &pidfd, UseCgroupFD: g.bears(), CgroupFD: g.fd}
	if !o.Box.Wanted { // else it dies with the first process of its namespace
		attr.Pdeathsig = syscall.SIGKILL
	}
	foreign := o.UID != uint32(syscall.Geteuid())
	if foreign {
		attr.Credential = &syscall.Credential{Uid: o.UID, Gid: o.GID, Groups: o.Groups}
	}
	stderr := files[2]
	if o.Join {
		stderr = files[1]
	}
	how := &syscall.ProcAttr{
		Dir: o.Cwd, Env: environment(o), Files: []uintptr{uintptr(files[0]), uintptr(files[1]), uintptr(stderr)}, Sys: attr,
	}
	arguments, bound, e := bind(o, &program, how)
	if e != 0 {
		return 0, -1, failure{proto.Fork, e, ""}
	}
	defer bound.close()
	pid, err := syscall.ForkExec(program, arguments, how)
	for tries := 0; err == syscall.ETXTBSY && tries < 50; tries++ {
		// Whoever wrote the program was forking at that moment, and the child has not closed its copy of the descriptor yet.
		unix.Poll(nil, 2)
		pid, err = syscall.ForkExec(program, arguments, how)
	}
	switch e := errno(err); {
	case e == syscall.EAGAIN || e == syscall.ENOMEM:
		return 0, -1, failure{proto.Fork, e, ""}
	case e != 0:
		return 0, -1, failure{proto.ExecProgram, e, program}
	}
	if pidfd < 0 {
		killAndReap(pid)
		return 0, -1, failure{proto.Fork, syscall.ENOSYS, ""}
	}
	if foreign && !hasRights(pid, o) {
		killAndReap(pid)
		syscall.Close(pidfd)
		return 0, -1, failure{proto.VerifyRights, syscall.EPERM, ""}
	}
	if e, program := bound.verdict(); e != 0 {
		killAndReap(pid)
		syscall.Close(pidfd)
		return 0, -1, failure{proto.ExecProgram, e, program}
	}
	return pid, pidfd, failure{}
}

// environment is never nil: for package syscall that would mean our own.
func environment(o *proto.Order) []string {
	if o.Environment == nil {
		return []string{}
	}
	return o.Environment
}

func killAndReap(pid int) {
	syscall.Kill(pid, syscall.SIGKILL) // it is our child and not reaped: the number is its own
	for {
		if _, err := syscall.Wait4(pid, nil, 0, nil); err != syscall.EINTR {
			return
		}
	}
}
