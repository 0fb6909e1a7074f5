package starter

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// sandboxMain sets up a sandbox from inside, as its first process. It ends by executing
// roost-init.
func sandboxMain(dir, into string) {
	syscall.CloseOnExec(startCmdFD)
	syscall.CloseOnExec(sandboxReportFD)
	o, ok := readStartCmd()
	if !ok {
		failSandbox(startError{proto.MakeSandbox, syscall.EPROTO, "its order"})
	}
	if into != "-" {
		if err := enterVersion1(into); err != 0 {
			failSandbox(startError{proto.MakeSandbox, err, into})
		}
	}
	// The reader of the report is the parent: if it died before this took effect nobody
	// reads, and the first write ends this process.
	setParentDeathSignal()
	if why := pivotToSandbox(dir+stagedRoot, &o); why.step != proto.StepNone {
		failSandbox(why)
	}
	if o.OOMScore <= 0 {
		writeFile("/proc/self/oom_score_adj", taskOOMScore)
	}
	var files [3]int
	var program string
	var why startError
	syscall.Umask(int(o.Umask & 0o777))
	if o.UID == uint32(syscall.Geteuid()) {
		program, why = prepareFiles(&o, &files)
	} else {
		program, why = prepareLike(&o, &files)
	}
	if why.step != proto.StepNone {
		failSandbox(why)
	}
	setParentDeathSignal() // the kernel clears it when a thread changes its ids, even for a moment
	pid, pidfd, why := forkTask(&o, program, &files, taskCgroup{})
	if why.step != proto.StepNone {
		failSandbox(why)
	}
	syscall.Close(pidfd)
	reportStep(&proto.StarterMessage{Type: proto.TypeStarted, Attempt: o.Attempt})
	execInit(pid)
}

func setParentDeathSignal() {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0); err != nil {
		failSandbox(startError{proto.MakeSandbox, errno(err), "its parent"})
	}
}

// taskOOMScore makes the kernel kill a task before its starter when memory runs out.
// Without rights a process can only raise its score.
const taskOOMScore = "500"

func readStartCmd() (o proto.StartCmd, ok bool) {
	text := make([]byte, 0, 4096)
	for {
		if len(text) == cap(text) {
			text = append(make([]byte, 0, 2*cap(text)), text...)
		}
		n, err := syscall.Pread(startCmdFD, text[len(text):cap(text)], int64(len(text)))
		if err != nil {
			return o, false
		}
		if n == 0 {
			break
		}
		text = text[:len(text)+n]
	}
	body, _, ok := proto.SplitFrame(text)
	if !ok || body == nil {
		return o, false
	}
	m, ok := proto.DecodeBody(body)
	return m.Start, ok && m.Type == proto.TypeStart
}

// pivotToSandbox builds the sandbox's file system from the staged root and detaches the
// machine's.
func pivotToSandbox(root string, o *proto.StartCmd) startError {
	type step struct {
		source, target, fs string
		flags              uintptr
		data               string
	}
	const plain = syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC
	mount := func(steps ...step) startError {
		for _, m := range steps {
			if err := syscall.Mount(m.source, m.target, m.fs, m.flags, m.data); err != nil {
				return startError{proto.MakeSandbox, errno(err), "mount on " + m.target}
			}
		}
		return startError{}
	}
	why := mount(
		step{"", "/", "", syscall.MS_REC | syscall.MS_PRIVATE, ""},
		// a mount from another namespace cannot be the new root
		step{root, root, "", syscall.MS_BIND | syscall.MS_REC, ""},
	)
	if why.step != proto.StepNone {
		return why
	}
	steps := []step{
		{"tmpfs", root + "/dev/shm", "tmpfs", syscall.MS_NOSUID | syscall.MS_NODEV, "mode=1777"},
		{"mqueue", root + "/dev/mqueue", "mqueue", plain, ""},
		{"devpts", root + "/dev/pts", "devpts", syscall.MS_NOSUID | syscall.MS_NOEXEC,
			"newinstance,ptmxmode=0666,mode=0620"},
		{"proc", root + "/proc", "proc", plain, ""},
		{o.IO, root + proto.SandboxIODir, "", syscall.MS_BIND, ""},
	}
	if o.Sandbox.TempDir != "" {
		unmountBelow(root + proto.SandboxTempDir)
		steps = append(steps, step{o.Sandbox.TempDir, root + proto.SandboxTempDir, "", syscall.MS_BIND, ""})
	}
	if why := mount(steps...); why.step != proto.StepNone {
		return why
	}
	if err := syscall.Chdir(root); err != nil {
		return startError{proto.MakeSandbox, errno(err), root}
	}
	// The old root is then mounted on top of the new one and is unmounted there
	// (pivot_root(2), "pivot_root(".", ".")").
	if err := syscall.PivotRoot(".", "."); err != nil {
		return startError{proto.MakeSandbox, errno(err), "pivot_root"}
	}
	if err := syscall.Unmount(".", syscall.MNT_DETACH); err != nil {
		return startError{proto.MakeSandbox, errno(err), "the old root"}
	}
	if err := syscall.Chdir("/"); err != nil {
		return startError{proto.MakeSandbox, errno(err), "/"}
	}
	return startError{}
}

// unmountBelow unmounts the machine's mounts below a directory that the task gets its own
// version of. They would be hidden, and a machine where a checkpoint of the task resumes
// would need them. A mount that the kernel refuses to unmount remains.
func unmountBelow(dir string) {
	var below []string
	for info := readAll("/proc/self/mountinfo"); len(info) > 0; {
		text := procStatusLine(info)
		info = info[min(len(text)+1, len(info)):]
		if fields := words(text); len(fields) > 4 {
			if at := unescape(fields[4]); len(at) > len(dir) && at[:len(dir)] == dir && at[len(dir)] == '/' {
				below = append(below, at)
			}
		}
	}
	for i := len(below) - 1; i >= 0; i-- {
		syscall.Unmount(below[i], syscall.MNT_DETACH)
	}
}

// execInit turns this process into roost-init. It keeps only the status file open, as
// descriptor 3.
func execInit(pid int) {
	status, err := syscall.Open(proto.SandboxIODir+"/"+proto.StatusFile,
		syscall.O_WRONLY|syscall.O_CLOEXEC|syscall.O_NOFOLLOW, 0)
	if err == nil {
		null, e := syscall.Open("/dev/null", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
		for fd := 0; fd < 3 && e == nil; fd++ {
			e = syscall.Dup3(null, fd, 0)
		}
		if err = e; err == nil {
			err = moveFD(status, startCmdFD)
		}
	}
	if err == nil {
		syscall.Exec(sandboxInitPath, []string{"roost-init", itoa(pid)}, []string{})
	}
	syscall.Exit(127) // and the program ends with this process
}

// moveFD duplicates a descriptor to another number, which stays open across exec.
func moveFD(fd, to int) error {
	if fd != to {
		return syscall.Dup3(fd, to, 0)
	}
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0)
	return err
}

// failSandbox reports why there is no sandbox, and exits.
func failSandbox(why startError) {
	reportStep(&proto.StarterMessage{Type: proto.TypeExited,
		State: proto.StarterState{Exit: proto.TaskExit{Step: why.step, Errno: int32(why.errno), Reason: why.path}}})
	syscall.Exit(1)
}

func reportStep(m *proto.StarterMessage) {
	frame := proto.AppendFrame(make([]byte, 0, 128), m)
	if n, err := syscall.Write(sandboxReportFD, frame); err != nil || n != len(frame) {
		syscall.Exit(1)
	}
}
