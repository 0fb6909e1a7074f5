package starter

import (
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// listenerFD is the descriptor of the listening socket that the startd made.
const listenerFD = 3

// Main is the program. Its arguments are the claim's directory, the first lease in
// nanoseconds, and the cgroup for tasks, "-" for none. Called by itself as "roost-starter
// bound …" it is a process that binds itself before it becomes the user's program.
func Main() {
	runtime.LockOSThread()
	args := parseArguments()
	switch {
	case len(args) >= rlimitPipeArgs && args[1] == "bound":
		rlimitMain(args)
	case len(args) < 3 || len(args) > 4:
		exitWithError("usage: roost-starter DIRECTORY LEASE [CGROUP] (a startd runs it)", 0)
	}
	s, err := openClaim(args[1])
	if err == 0 && len(args) == 4 {
		err = s.group.open(args[3])
	}
	if err != 0 {
		exitWithError(args[1], err)
	}
	s.makeTimers()
	s.renewLease(number(args[2]), 0)
	disableHugePages() // while its tasks follow each other without a rest the kernel has time enough to put huge ones
	s.run()
	s.stopServer()
	syscall.Exit(0)
}

// openClaim prepares the process for its claim. It closes every inherited descriptor but
// the listener, and becomes the parent of all orphans below it.
func openClaim(dir string) (*starterProcess, syscall.Errno) {
	unix.CloseRange(listenerFD+1, ^uint(0), 0)
	syscall.CloseOnExec(listenerFD)
	syscall.SetNonblock(listenerFD, true)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, errno(err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return nil, errno(err)
	}
	raiseCPUPriority(0)
	unix.Prctl(unix.PR_SET_TIMERSLACK, defaultTimerSlack, 0, 0, 0) // the startd has given us another one
	defaultSignals()
	journal, err := syscall.Open(dir+"/journal",
		syscall.O_WRONLY|syscall.O_CREAT|syscall.O_APPEND|syscall.O_CLOEXEC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, errno(err)
	}
	timer, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, errno(err)
	}
	return &starterProcess{dir: dir, journal: journal, timer: timer, conn: -1, pidfd: -1, sandboxReport: -1,
		group: taskCgroup{fd: -1}, state: proto.StarterState{Starter: int64(syscall.Getpid())}}, 0
}

// raiseCPUPriority gives a thread, 0 for this one, a higher priority than the other
// processes of its group. It has to end leases and kill tasks that use all the CPU time.
// Its children do not inherit the priority. Without the right to raise it, nothing
// changes.
func raiseCPUPriority(pid int) {
	unix.SchedSetAttr(pid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Flags: unix.SCHED_FLAG_RESET_ON_FORK,
		Nice: starterNice}, 0)
}

// starterNice is the starter's nice value.
const starterNice = -15

// defaultTimerSlack is the kernel's timer slack of a process, in nanoseconds. Tasks
// inherit it from this thread.
const defaultTimerSlack = 50_000

// parseArguments reads the command line: package os, which knows it, is too big.
func parseArguments() []string {
	fd, err := syscall.Open("/proc/self/cmdline", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		exitWithError("/proc/self/cmdline", errno(err))
	}
	defer syscall.Close(fd)
	var args []string
	var word []byte
	buffer := make([]byte, 4096)
	for {
		n, err := syscall.Read(fd, buffer)
		if err != nil || n <= 0 {
			return args
		}
		for _, c := range buffer[:n] {
			if c == 0 {
				args, word = append(args, string(word)), word[:0]
			} else {
				word = append(word, c)
			}
		}
	}
}

func number(text string) int64 {
	var n int64
	for _, c := range text {
		if c < '0' || c > '9' || n > 1<<59 {
			exitWithError("lease "+text, syscall.EINVAL)
		}
		n = n*10 + int64(c-'0')
	}
	return n
}

// logError writes a line to the log.
func logError(subject string, err syscall.Errno) {
	line := "roost-starter: " + subject
	if err != 0 {
		line += ": " + err.Error()
	}
	syscall.Write(2, []byte(line+"\n"))
}

func exitWithError(subject string, err syscall.Errno) {
	logError(subject, err)
	syscall.Exit(1)
}

func errno(err error) syscall.Errno {
	if e, ok := err.(syscall.Errno); ok {
		return e
	}
	if err != nil {
		return syscall.EIO
	}
	return 0
}
