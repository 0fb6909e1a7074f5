package starter

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// sandboxServer is a process that creates the first process of each sandbox of a claim.
// It is one of roost-setup, and as small. It has the mount namespace that the sandboxes
// copy, and is in the user namespace that wrapped ones share: so a task needs neither a
// fork of the starter nor an exec of roost-setup.
//
// For each task the starter writes the task's list into a file and sends a command. The
// server creates a process in the namespaces of the task, as a child of the starter,
// and answers with its pid. That process maps the file in the place of the server's
// list and goes on with its next call. The file serves one task after the other:
// whatever mapped it is gone when the task is reaped.
//
// The server is in the group of the starter: it belongs to no task, and no checkpoint
// contains it. It is there while tasks follow each other, and ends when the starter
// does. The zero value is no server.
type sandboxServer struct {
	pid      int
	wrapped  bool // it is in a user namespace
	list     int  // file with the list of a task
	listed   int  // bytes of data in it
	start    int  // index of the first call of a task's list
	commands int  // end of a pipe for writing
	replies  int  // for reading
	reports  int  // the same of the tasks' reports; the starter is its only reader
	failures sandboxFailures
}

// The descriptors of a server. Its children close those that are not for them.
const (
	serverTasksFD    = 5 // file with the list of a task, listFD later; then joinedFD
	serverCommandsFD = 6
	serverRepliesFD  = 7
	serverGroupFD    = 8 // directory of the tasks' group, to create a process in it
)

// A command replaces the words at the beginning of the server's list, and a reply
// repeats them: the failure, and the pid of the child.
const (
	serverMessage  = wordChild + 8 - listAddress // size of both, in bytes
	serverChoice   = wordProgram                 // in a command: how the child comes into its group
	serverCloneIn  = 1                           // it is created in it; else it enters by itself
	maxListedBytes = 64 << 10                    // of data that stay in the file after their task
)

// startServer starts the server, unless there is one of that kind. The user namespace of
// one for wrapped sandboxes serves all its tasks, because a fork with one copies the
// memory of the starter.
func (s *starterProcess) startServer(wrapped bool) startError {
	if s.server.pid > 0 && s.server.wrapped == wrapped {
		return startError{}
	}
	s.stopServer()
	steps := serverSteps(s.dir+stagedRoot, len(s.sockets))
	v := sandboxServer{wrapped: wrapped, start: len(steps.calls)}
	list, why := steps.write()
	if why.step != proto.StepNone {
		return why
	}
	defer syscall.Close(list)
	v.failures = steps.failuresOnly()
	files, err := v.open(list, s.group)
	defer func() {
		for _, fd := range files[listFD+1:] {
			if fd != uintptr(v.list) && fd != uintptr(s.group.fd) {
				syscall.Close(int(fd))
			}
		}
	}()
	if err == nil {
		attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
		if wrapped {
			everybody := []syscall.SysProcIDMap{{Size: 1<<32 - 1}}
			attr.Cloneflags |= syscall.CLONE_NEWUSER
			attr.UidMappings, attr.GidMappings, attr.GidMappingsEnableSetgroups = everybody, everybody, true
		}
		v.pid, err = s.forkSetup(s.sockets.appendTo(files, socketsFD), attr)
	}
	if err != nil {
		v.close()
		return startError{proto.MakeSandbox, errno(err), "its server"}
	}
	raiseCPUPriority(v.pid) // the starter waits for it
	s.server = v
	return startError{}
}

// open opens the starter's files of a server, and returns the files that the server has.
func (v *sandboxServer) open(list int, group taskCgroup) (files []uintptr, err error) {
	files = []uintptr{0, 1, 2, uintptr(list)}
	v.list, v.commands, v.replies, v.reports = -1, -1, -1, -1
	var reports, commands, replies [2]int
	if err = syscall.Pipe2(reports[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK); err != nil {
		return files, err
	}
	v.reports, files = reports[0], append(files, uintptr(reports[1]))
	var e syscall.Errno
	if v.list, e = memoryFile("list"); e != 0 {
		return files, e
	}
	files = append(files, uintptr(v.list))
	if err = syscall.Pipe2(commands[:], syscall.O_CLOEXEC); err != nil {
		return files, err
	}
	v.commands, files = commands[1], append(files, uintptr(commands[0]))
	if err = syscall.Pipe2(replies[:], syscall.O_CLOEXEC); err != nil {
		return files, err
	}
	v.replies, files = replies[0], append(files, uintptr(replies[1]))
	if group.fd >= 0 {
		files = append(files, uintptr(group.fd))
	}
	return files, nil
}

func (v *sandboxServer) close() {
	for _, fd := range [...]int{v.list, v.commands, v.replies, v.reports} {
		if fd >= 0 {
			syscall.Close(fd)
		}
	}
}

// stopServer ends the server, if there is one. No task may run in a sandbox of it.
func (s *starterProcess) stopServer() {
	if s.server.pid == 0 {
		return
	}
	if s.server.pid > 0 {
		killAndReap(s.server.pid)
	}
	s.server.close()
	s.server = sandboxServer{}
}

// serverReaped is in the place of the pid of a server that is gone. Its files stay
// open: a task that it has created may report yet.
const serverReaped = -1

// create has the server create a process that carries out a list. ended: the server has
// ended, and perhaps created one.
func (v *sandboxServer) create(steps *syscallList, cloneIn bool) (pid int, why startError, ended bool) {
	if why = steps.finish(); why.step != proto.StepNone {
		return 0, why, false
	}
	if v.listed > maxListedBytes {
		syscall.Ftruncate(v.list, listData)
	}
	var report [reportSize]byte // of the server, or of a task that was killed when it reported
	n := v.lastReport(&report)
	v.listed = len(steps.data)
	if e := steps.storeIn(v.list); e != 0 {
		return 0, startError{proto.MakeSandbox, e, "its list"}, false
	}
	var message [serverMessage / 8]uint64
	if cloneIn {
		message[(serverChoice-listAddress)/8] = serverCloneIn
	}
	if !exchange(v.commands, v.replies, &message) {
		why, _ = v.failures.explain(report[:max(n, v.lastReport(&report))])
		return 0, why, true
	}
	if e := syscall.Errno(message[0] & lowHalf); e != 0 {
		return 0, startError{proto.MakeSandbox, e, "namespaces"}, false
	}
	return int(message[(wordChild-listAddress)/8]), startError{}, false
}

// lastReport reads what is in the pipe, and returns how long the last report is.
func (v *sandboxServer) lastReport(report *[reportSize]byte) (size int) {
	for {
		var next [reportSize]byte
		n, err := syscall.Read(v.reports, next[:])
		if err == syscall.EINTR {
			continue
		}
		if n <= 0 {
			return size
		}
		*report, size = next, n
	}
}

// exchange writes a message and reads the reply, and reports whether there is one. The
// calls are raw, as fork is one: they take no longer.
func exchange(to, from int, message *[serverMessage / 8]uint64) bool {
	for _, call := range [...]struct {
		number uintptr
		fd     int
	}{{syscall.SYS_WRITE, to}, {syscall.SYS_READ, from}} {
		for {
			n, _, e := syscall.RawSyscall(call.number, uintptr(call.fd), uintptr(unsafe.Pointer(message)),
				serverMessage)
			if e == 0 && n == serverMessage {
				break
			}
			if e != syscall.EINTR {
				return false
			}
		}
	}
	return true
}

// serverSteps lists what a server does. Its last call is the one with which a child
// takes on the list of its task: the child goes on there with the call of the next
// index.
func serverSteps(root string, sockets int) *syscallList {
	l := newSyscallList()
	l.must(proto.MakeSandbox, "its server", syscall.SYS_DUP3, serverTasksFD, listFD, 0)
	l.try(syscall.SYS_PRCTL, syscall.PR_SET_NAME, l.text(proto.SandboxServer))
	l.openMountNamespace(root)
	for fd := uint64(sandboxReportFD); fd <= serverGroupFD; fd++ { // a program has none of them
		l.try(syscall.SYS_FCNTL, fd, syscall.F_SETFD, syscall.FD_CLOEXEC)
	}
	l.hideSockets(sockets)
	received := l.words(0)
	retry, reply, child, born, ended, into := l.label(), l.label(), l.label(), l.label(), l.label(), l.label()
	again := l.here()
	read := l.call(retry, syscall.SYS_READ, serverCommandsFD, listAddress, serverMessage)
	l.calls[read].result = received
	l.jumpIf(received, ^uint64(0), 0, ended) // the starter is gone
	flags := uint64(sandboxNamespaces | syscall.CLONE_PARENT)
	l.jumpIf(serverChoice, ^uint64(0), serverCloneIn, into)
	clone := l.call(reply, syscall.SYS_CLONE, flags|uint64(syscall.SIGCHLD))
	l.calls[clone].result = wordChild
	l.jump(born)
	l.place(into)
	// its struct clone_args has the group at the end
	arguments := l.words(flags|unix.CLONE_INTO_CGROUP, 0, 0, 0, 0, 0, 0, 0, 0, 0, serverGroupFD)
	clone = l.call(reply, unix.SYS_CLONE3, arguments, cloneArgsSize)
	l.calls[clone].result = wordChild
	l.place(born)
	l.jumpIf(wordChild, ^uint64(0), 0, child)
	l.place(reply)
	l.call(ended, syscall.SYS_WRITE, serverRepliesFD, listAddress, serverMessage)
	l.jump(again)
	l.place(retry)
	l.jumpIf(wordFailure, lowHalf, uint64(syscall.EINTR), again)
	l.place(ended)
	l.exit()
	l.place(child)
	size := l.must(proto.MakeSandbox, "its list", syscall.SYS_LSEEK, listFD, 0, seekEnd)
	mapped := l.must(proto.MakeSandbox, "its list", syscall.SYS_MMAP, listAddress, 0,
		syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_FIXED, listFD, 0)
	l.calls[size].result = l.argument(mapped, 1)
	return l
}

// seekEnd is SEEK_END of lseek(2), and cloneArgsSize the size of clone_args with a group
// (CLONE_ARGS_SIZE_VER2).
const (
	seekEnd       = 2
	cloneArgsSize = 11 * 8
)

// openMountNamespace makes the mount namespace that the sandboxes copy, as joinedFD. It
// has the staged root as its root, and nothing else. The server returns from there,
// because what comes from the machine is cloned before.
func (l *syscallList) openMountNamespace(root string) {
	const subject = "mount namespace"
	const directory = joinedFD // of the process's namespaces: the lowest descriptor that is free
	l.must(proto.MakeSandbox, subject, syscall.SYS_CLOSE, serverTasksFD)
	l.must(proto.MakeSandbox, subject, syscall.SYS_OPENAT, currentDir, l.text("/proc/self/ns"),
		unix.O_PATH|syscall.O_DIRECTORY)
	mnt := l.text("mnt")
	own := l.must(proto.MakeSandbox, subject, syscall.SYS_OPENAT, directory, mnt, syscall.O_CLOEXEC)
	l.must(proto.MakeSandbox, subject, syscall.SYS_UNSHARE, syscall.CLONE_NEWNS)
	// What came along from another namespace cannot be the new root.
	l.mount(root, "", root, "", syscall.MS_BIND|syscall.MS_REC, "")
	// The old root lands on top of the new one, from where it is taken away
	// (pivot_root(2), "pivot_root(".", ".")").
	here := l.text(".")
	l.must(proto.MakeSandbox, root, syscall.SYS_CHDIR, l.text(root))
	l.must(proto.MakeSandbox, "pivot_root", syscall.SYS_PIVOT_ROOT, here, here)
	l.must(proto.MakeSandbox, "the old root", syscall.SYS_UMOUNT2, here, syscall.MNT_DETACH)
	made := l.must(proto.MakeSandbox, subject, syscall.SYS_OPENAT, directory, mnt, syscall.O_CLOEXEC)
	move := l.must(proto.MakeSandbox, subject, syscall.SYS_DUP3, 0, joinedFD, syscall.O_CLOEXEC)
	l.calls[made].result = l.argument(move, 0)
	back := l.must(proto.MakeSandbox, subject, unix.SYS_SETNS, 0, syscall.CLONE_NEWNS)
	l.calls[own].result = l.argument(back, 0)
}
