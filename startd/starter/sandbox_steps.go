package starter

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// The descriptors of the process that makes a sandbox from inside.
const (
	listFD          = 3
	sandboxReportFD = 4
	joinedFD        = 5 // of the mount namespace that it joins
)

// taskOOMScore makes the kernel choose a task before its starter when memory runs out. A
// process without privileges can only raise the score.
const taskOOMScore = "500"

// currentDir is AT_FDCWD as an argument of a system call.
const currentDir = ^uint64(99)

// listSandbox lists what the first process of a sandbox does. It makes the sandbox's
// file system, starts the program, reports, and becomes roost-init unless the program has
// ended before. Its first call comes behind those of the server that has created it.
func (l *syscallList) listSandbox(server *sandboxServer, group taskCgroup, o *proto.StartCmd) {
	l.clear()
	for range server.start {
		l.try(0) // the process maps the list in the place of the server's, and goes on behind that call
	}
	l.try(syscall.SYS_CLOSE, serverCommandsFD)
	l.try(syscall.SYS_CLOSE, serverRepliesFD) // the end of a server must be seen
	l.try(syscall.SYS_CLOSE, listFD)
	if group.dir != "" && !group.canCloneInto() {
		l.writeFile(proto.MakeSandbox, group.dir, group.dir+"/cgroup.procs", "0")
	}
	// Whoever reads the report is the parent: if it has died before this took effect,
	// nobody does, and the first report ends us.
	l.must(proto.MakeSandbox, "its parent", syscall.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uint64(syscall.SIGKILL))
	l.copyMounts(server.wrapped, o)
	score := taskOOMScore
	if o.OOMScore > 0 {
		score = itoa(int(min(o.OOMScore, maxOOMScore)))
	}
	l.writeFile(proto.StepNone, "", "/proc/self/oom_score_adj", score)
	l.runProgram(o)
}

// runProgram starts the program, and waits for its end or becomes roost-init.
func (l *syscallList) runProgram(o *proto.StartCmd) {
	l.try(syscall.SYS_UMASK, uint64(o.Umask&0o777))
	child := l.label()
	// The child has the memory of its parent, which waits until it has begun the program
	// or ended. Nothing is on the stack.
	fork := l.must(proto.Fork, "", syscall.SYS_CLONE,
		syscall.CLONE_VM|syscall.CLONE_VFORK|uint64(syscall.SIGCHLD))
	l.calls[fork].result = wordChild
	l.jumpIf(wordChild, ^uint64(0), 0, child)
	l.awaitProgram()
	l.place(child)
	l.startProgram(o)
}

// writeFile writes a text into a file that is there. Without a step a failure is
// ignored.
func (l *syscallList) writeFile(step proto.StartStep, subject, path, text string) {
	done := l.label()
	add := func(number uintptr, arguments ...uint64) int {
		if step == proto.StepNone {
			return l.call(done, number, arguments...)
		}
		return l.must(step, subject, number, arguments...)
	}
	open := add(syscall.SYS_OPENAT, currentDir, l.text(path), syscall.O_WRONLY|syscall.O_CLOEXEC)
	write := add(syscall.SYS_WRITE, 0, l.text(text), uint64(len(text)))
	l.calls[open].result = l.argument(write, 0)
	l.place(done)
	l.try(syscall.SYS_CLOSE, listFD) // the lowest that is free
}

// copyMounts makes the sandbox's file system from a mount namespace that has only the
// staged root. So the kernel neither copies the machine's mounts, nor waits until they
// are gone. What comes from the machine is cloned before. So is /proc if the sandbox is
// wrapped.
func (l *syscallList) copyMounts(wrapped bool, o *proto.StartCmd) {
	from := []string{o.IO, o.Sandbox.TempDir, o.SecretsDir}
	to := []string{proto.SandboxIODir, proto.SandboxTempDir, proto.SandboxSecretsDir}
	proc, clones := -1, make([]int, len(from))
	if wrapped {
		proc = l.newProc()
	}
	dirs := l.cloneUserDirs(o)
	for i, path := range from {
		if path != "" {
			clones[i] = l.must(proto.MakeSandbox, "mount on "+to[i], unix.SYS_OPEN_TREE, currentDir, l.text(path),
				unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		}
	}
	l.must(proto.MakeSandbox, "mount namespace", unix.SYS_SETNS, joinedFD, syscall.CLONE_NEWNS)
	l.must(proto.MakeSandbox, "mount namespace", syscall.SYS_UNSHARE, syscall.CLONE_NEWNS)
	const plain = syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC
	l.mount("tmpfs", "", "/dev/shm", "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, "mode=1777")
	l.mount("mqueue", "", "/dev/mqueue", "mqueue", plain, "")
	l.mount("devpts", "", "/dev/pts", "devpts", syscall.MS_NOSUID|syscall.MS_NOEXEC,
		"newinstance,ptmxmode=0666,mode=0620")
	if wrapped {
		l.attach(proc, "/proc")
	} else {
		l.mount("proc", "", "/proc", "proc", plain, "")
	}
	for i, path := range from {
		if path == "" {
			continue
		}
		l.attach(clones[i], to[i])
	}
	l.attachUserDirs(o, dirs)
	l.mount("", "", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "")
	l.must(proto.MakeSandbox, "/", syscall.SYS_CHDIR, l.text("/"))
	l.try(syscall.SYS_CLOSE, listFD) // the first clone; exec closes the others
	l.try(syscall.SYS_CLOSE, joinedFD)
}

// newProc makes the sandbox's /proc, which nothing has mounted yet. In a user namespace
// the kernel refuses one where no whole /proc can be seen, as in the namespace that is
// copied. It returns the call whose result is the mount.
func (l *syscallList) newProc() (call int) {
	const (
		subject   = "mount on /proc"
		setString = 1 // fsconfig_command of linux/mount.h
		create    = 6
	)
	proc := l.text("proc")
	// the lowest descriptor that is free, listFD
	l.must(proto.MakeSandbox, subject, unix.SYS_FSOPEN, proc, unix.FSOPEN_CLOEXEC)
	l.must(proto.MakeSandbox, subject, unix.SYS_FSCONFIG, listFD, setString, l.text("source"), proc, 0)
	l.must(proto.MakeSandbox, subject, unix.SYS_FSCONFIG, listFD, create, 0, 0, 0)
	call = l.must(proto.MakeSandbox, subject, unix.SYS_FSMOUNT, listFD, unix.FSMOUNT_CLOEXEC,
		unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	l.try(syscall.SYS_CLOSE, listFD)
	return call
}

// attach attaches a mount that a call has made.
func (l *syscallList) attach(mount int, target string) {
	attach := l.must(proto.MakeSandbox, "mount on "+target, unix.SYS_MOVE_MOUNT, 0, l.text(""), currentDir,
		l.text(target), unix.MOVE_MOUNT_F_EMPTY_PATH)
	l.calls[mount].result = l.argument(attach, 0)
}

// mount mounts a file system below a root.
func (l *syscallList) mount(source, below, target, fs string, flags uint64, data string) {
	var options uint64 // some file systems take an empty text for a wrong one
	if data != "" {
		options = l.text(data)
	}
	target = below + target
	l.must(proto.MakeSandbox, "mount on "+target, syscall.SYS_MOUNT, l.text(source), l.text(target), l.text(fs), flags,
		options)
}

// firstChild is the pid of the first child in a PID namespace that has its first process
// only.
const firstChild = 2

// initDelay is how long, in nanoseconds, the first process waits for the end of the
// program before it becomes roost-init. The starter reads no report before that time.
const initDelay = shortWait * 1e6 / 2

// awaitProgram is what the first process does once the program runs. For a short task it
// is all: it reports that the program has run, and its status, and ends. A task that goes
// on is worth a process that can be checkpointed.
func (l *syscallList) awaitProgram() {
	known, long, ended, failed := l.label(), l.label(), l.label(), l.label()
	l.jumpIf(wordFailed, ^uint64(0), reportSize, failed) // the child has reported, and is gone
	l.jumpIf(wordChild, ^uint64(0), firstChild, known)
	l.refuse(proto.MakeSandbox, syscall.EPROTO, "its processes")
	l.place(known)
	const setMask, setSize = 2, 8
	report := l.words(0, reportEnded<<32)
	look := func() {
		// Only this one: the others of the task may be too many.
		wait := l.call(long, syscall.SYS_WAIT4, firstChild, report+8, syscall.WNOHANG, 0)
		l.calls[wait].result = wordWaited
		l.jumpIf(wordWaited, ^uint64(0), firstChild, ended)
	}
	l.call(long, syscall.SYS_RT_SIGPROCMASK, setMask, l.words(^uint64(0)), 0, setSize)
	look() // its signal may have come before it was blocked
	l.try(syscall.SYS_RT_SIGTIMEDWAIT, l.words(1<<(syscall.SIGCHLD-1)), 0, l.words(0, initDelay), setSize)
	look()
	l.place(long)
	l.becomeInit()
	l.place(ended)
	l.try(syscall.SYS_WRITE, sandboxReportFD, report, reportSize)
	l.place(failed)
	l.exit()
}

// becomeInit has the first process report that the program runs, and become the small
// program that reaps. That program has the file for the status as descriptor 3, and no
// other descriptors.
func (l *syscallList) becomeInit() {
	const status = proto.SandboxIODir + "/" + proto.StatusFile
	done := l.label()
	l.try(syscall.SYS_CLOSE, 0)
	l.call(done, syscall.SYS_OPENAT, currentDir, l.text("/dev/null"), syscall.O_RDWR) // the lowest that is free, 0
	l.call(done, syscall.SYS_DUP3, 0, 1, 0)
	l.call(done, syscall.SYS_DUP3, 0, 2, 0)
	l.try(syscall.SYS_UMASK, 0)
	l.must(proto.MakeSandbox, status, syscall.SYS_OPENAT, currentDir, l.text(status),
		syscall.O_WRONLY|syscall.O_CREAT|syscall.O_NOFOLLOW, 0o600) // 3
	l.must(proto.MakeSandbox, status, syscall.SYS_PWRITE64, listFD, l.words(noStatus), 4, 0)
	l.must(proto.MakeSandbox, "its session", syscall.SYS_SETSID)
	l.call(done, syscall.SYS_WRITE, sandboxReportFD, l.words(0, 0), reportSize)
	l.dropCapabilities()
	l.try(syscall.SYS_EXECVE, l.text(sandboxInitPath), l.texts([]string{"roost-init", itoa(firstChild)}), l.texts(nil))
	l.place(done)
	l.exit() // and the program ends with us
}

// noStatus is in the file for the status until the program has ended.
const noStatus = lowHalf

// startProgram is what the child does: it takes on the user's rights and becomes the
// program. While it opens what the user names, only its effective ids are the user's, so
// that no process of the user's can signal or trace it meanwhile.
func (l *syscallList) startProgram(o *proto.StartCmd) {
	const same = ^uint64(0)
	uid, gid := uint64(o.UID), uint64(o.GID)
	foreign := o.UID != uint32(syscall.Geteuid())
	l.must(proto.Fork, "", syscall.SYS_SETSID)
	if foreign {
		l.must(proto.Credentials, "", syscall.SYS_SETGROUPS, uint64(len(o.Groups)), l.groups(o.Groups))
		l.must(proto.Credentials, "", syscall.SYS_SETRESGID, same, gid, same)
		l.must(proto.Credentials, "", syscall.SYS_SETRESUID, same, uid, same)
	}
	l.dropCapabilities()
	l.must(proto.EnterCwd, o.Cwd, syscall.SYS_CHDIR, l.text(o.Cwd))
	l.openStreams(o)
	program, chosen := l.findProgram(o)
	if foreign {
		l.must(proto.Credentials, "", syscall.SYS_SETRESGID, gid, gid, gid)
		l.must(proto.Credentials, "", syscall.SYS_SETRESUID, uid, uid, uid)
		l.verifyRights(o)
		l.try(syscall.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0) // nobody traces it before it is the program
	}
	l.setLimits(&o.Limits)
	l.placeSockets(len(o.Sockets))
	l.execProgram(o, program, chosen)
}

// dropCapabilities gives up the capabilities that a nested starter's processes have over
// their user namespace. Of others the kernel takes them with their ids.
func (l *syscallList) dropCapabilities() {
	if isNested() {
		l.must(proto.Credentials, "", syscall.SYS_CAPSET, l.words(unix.LINUX_CAPABILITY_VERSION_3), l.words(0, 0, 0))
	}
}

// groups adds a list of groups, of four bytes each, and returns its address.
func (l *syscallList) groups(list []uint32) uint64 {
	words := make([]uint64, (len(list)+1)/2)
	for i, g := range list {
		words[i/2] |= uint64(g) << (32 * (i % 2))
	}
	return l.words(words...)
}

// verifyRights refuses to go on unless all ids are the user's, and no program can get
// others.
func (l *syscallList) verifyRights(o *proto.StartCmd) {
	bad := l.label()
	check := func(word, mask, want uint64) {
		good := l.label()
		l.jumpIf(word, mask, want, good)
		l.jump(bad)
		l.place(good)
	}
	for _, ids := range [...]struct {
		number uintptr
		want   uint64
	}{{syscall.SYS_GETRESUID, uint64(o.UID)}, {syscall.SYS_GETRESGID, uint64(o.GID)}} {
		at := l.words(0, 0)
		l.must(proto.Credentials, "", ids.number, at, at+4, at+8)
		check(at, ^uint64(0), ids.want|ids.want<<32)
		check(at+8, lowHalf, ids.want)
	}
	none, done := l.words(0), l.label()
	privileges := l.must(proto.Credentials, "", syscall.SYS_PRCTL, unix.PR_GET_NO_NEW_PRIVS)
	l.calls[privileges].result = none
	l.jumpIf(none, ^uint64(0), 1, done)
	l.place(bad)
	l.refuse(proto.Credentials, syscall.EPERM, "")
	l.place(done)
}

// setLimits holds the process to the limits of the task.
func (l *syscallList) setLimits(limits *proto.ProcessLimits) {
	if *limits == (proto.ProcessLimits{}) {
		return
	}
	// A nice value below the present one may not be asked for, which is as good.
	l.try(syscall.SYS_SETPRIORITY, 0, 0, uint64(min(max(limits.Nice, 0), 19)))
	for _, limit := range [...]struct {
		what  uint64
		value int64
		grace int64 // between the signal that says so and the end
	}{{unix.RLIMIT_CPU, limits.CPU, proto.CPUGrace}, {unix.RLIMIT_FSIZE, limits.File, 0},
		{unix.RLIMIT_AS, limits.AddressSpace, 0}} {
		if limit.value <= 0 {
			continue
		}
		held := l.label()
		failed := l.label()
		at := l.call(failed, unix.SYS_PRLIMIT64, 0, limit.what,
			l.words(uint64(limit.value), uint64(limit.value+limit.grace)), 0)
		l.explain(at, proto.ExecProgram, "")
		l.jump(held)
		l.place(failed)
		l.jumpIf(wordFailure, lowHalf, uint64(syscall.EPERM), held) // it is held to less already
		l.jump(l.failed)
		l.place(held)
	}
}

// openStreams opens standard input, output and error, as prepareFiles does without a
// sandbox. A fifo without anybody at its other end is an error, as nobody can wait here.
func (l *syscallList) openStreams(o *proto.StartCmd) {
	for i, stream := range taskStreams(o) {
		if stream.path == "" {
			continue
		}
		again, failed := l.here(), l.label()
		open := l.call(failed, syscall.SYS_OPENAT, currentDir, l.text(stream.path),
			uint64(stream.flags|syscall.O_CLOEXEC|syscall.O_NONBLOCK), 0o666)
		l.explain(open, stream.step, stream.path)
		move := l.must(stream.step, stream.path, syscall.SYS_DUP3, 0, uint64(i), 0)
		l.calls[open].result = l.argument(move, 0)
		l.must(stream.step, stream.path, syscall.SYS_FCNTL, uint64(i), syscall.F_SETFL,
			uint64(stream.flags&syscall.O_APPEND))
		next := l.label()
		l.jump(next)
		l.place(failed)
		l.jumpIf(wordFailure, lowHalf, uint64(syscall.EINTR), again)
		l.jump(l.failed)
		l.place(next)
	}
	if o.Join {
		l.must(proto.OpenStderr, o.Stderr, syscall.SYS_DUP3, 1, 2, 0)
	}
}

// findProgram looks for the program as the function of that name for tasks without a
// sandbox does. It returns the address of its path; 0 if there are several, one of which
// is added to an argument by the jumps that it returns.
func (l *syscallList) findProgram(o *proto.StartCmd) (program uint64, chosen []int) {
	if hasSlash(o.Executable) {
		l.programs = []listedProgram{{0, o.Executable}}
		return l.text(o.Executable), nil
	}
	found := l.label()
	candidates := programCandidates(o)
	if len(candidates) > maxCandidates {
		l.refuse(proto.FindProgram, syscall.E2BIG, programName(o))
		return 0, nil
	}
	status := l.words(make([]uint64, unsafe.Sizeof(syscall.Stat_t{})/8)...)
	mode := status + uint64(unsafe.Offsetof(syscall.Stat_t{}.Mode))
	for _, path := range candidates {
		at, denied, regular, other, next := l.text(path), l.label(), l.label(), l.label(), l.label()
		l.call(denied, unix.SYS_FACCESSAT2, currentDir, at, unix.X_OK, unix.AT_EACCESS)
		look := l.here()
		l.call(next, unix.SYS_NEWFSTATAT, currentDir, at, status, 0)
		l.jumpIf(mode, syscall.S_IFMT, syscall.S_IFREG, regular)
		l.jump(next)
		l.place(regular)
		chosen = append(chosen, l.jumpAdding(0, 0, at))
		l.jumpAdding(found, wordProgram, at)
		l.place(denied)
		l.jumpIf(wordFailure, lowHalf, uint64(syscall.EACCES), other)
		// A kernel without that call: whether it may be executed is seen when it is.
		l.jumpIf(wordFailure, lowHalf, uint64(syscall.ENOSYS), look)
		l.jumpIf(wordFailure, lowHalf, uint64(syscall.EPERM), look)
		l.jump(next)
		l.place(other)
		l.jumpAdding(next, wordDenied, 1)
		l.place(next)
		l.programs = append(l.programs, listedProgram{at, path})
	}
	missing := l.label()
	l.jumpIf(wordDenied, ^uint64(0), 0, missing)
	l.refuse(proto.FindProgram, syscall.EACCES, programName(o))
	l.place(missing)
	l.refuse(proto.FindProgram, syscall.ENOENT, programName(o))
	l.place(found)
	return 0, chosen
}

// execProgram becomes the program. While another process has it open for writing, it is
// tried again: whoever wrote it was forking at that moment, and the child has not closed
// its copy of the descriptor yet.
func (l *syscallList) execProgram(o *proto.StartCmd, program uint64, chosen []int) {
	const tries = 50
	pause := l.words(0, 2e6) // nanoseconds
	failed, wait := l.label(), l.label()
	again := l.here()
	exec := l.call(failed, syscall.SYS_EXECVE, program, l.texts(o.Arguments), l.texts(o.Environment))
	l.explain(exec, proto.ExecProgram, o.Executable)
	for _, jump := range chosen {
		l.calls[jump].result = l.argument(exec, 0)
	}
	l.place(failed)
	l.jumpIf(wordFailure, lowHalf, uint64(syscall.ETXTBSY), wait)
	l.jump(l.failed)
	l.place(wait)
	l.jumpIf(wordTries, ^uint64(0), tries, l.failed)
	l.try(syscall.SYS_NANOSLEEP, pause, 0)
	l.jumpAdding(again, wordTries, 1)
}
