package shim

import (
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// listener is the descriptor of the listening socket that the startd made.
const listener = 3

// Main is the program. Its arguments are the claim's directory, the first lease in nanoseconds, and the cgroup for tasks, "-" for none.
// Called by itself as "roost-starter box DIRECTORY CGROUP" it is the process that sets up a box, and as "roost-starter bound …" one that binds itself
// before it becomes the user's program.
func Main() {
	runtime.LockOSThread()
	args := arguments()
	switch {
	case len(args) == 4 && args[1] == "box":
		boxMain(args[2], args[3])
	case len(args) >= boundArguments && args[1] == "bound":
		boundMain(args)
	case len(args) < 3 || len(args) > 4:
		die("usage: roost-starter DIRECTORY LEASE [CGROUP] (a startd runs it)", 0)
	}
	s, err := open(args[1])
	if err == 0 && len(args) == 4 {
		err = s.group.open(args[3])
	}
	if err != 0 {
		die(args[1], err)
	}
	s.makeTimers()
	s.renew(number(args[2]), 0)
	smallPages() // while its tasks follow each other without a rest the kernel has time enough to put huge ones
	s.run()
	syscall.Exit(0)
}

// open takes on the claim: it closes every inherited descriptor but the listener, and becomes the parent of all orphans below it.
func open(dir string) (*starter, syscall.Errno) {
	unix.CloseRange(listener+1, ^uint(0), 0)
	syscall.CloseOnExec(listener)
	syscall.SetNonblock(listener, true)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, errno(err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return nil, errno(err)
	}
	hurry()
	defaultSignals()
	journal, err := syscall.Open(dir+"/journal", syscall.O_WRONLY|syscall.O_CREAT|syscall.O_APPEND|syscall.O_CLOEXEC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, errno(err)
	}
	timer, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, errno(err)
	}
	return &starter{dir: dir, journal: journal, timer: timer, conn: -1, pidfd: -1, report: -1, group: group{fd: -1}, state: proto.State{Starter: int64(syscall.Getpid())}}, 0
}

// hurry puts this thread before whatever else is in its group, for it has leases to keep and tasks to kill that leave it no time. What it forks
// has no part in that. Without the right to it all is as it was.
func hurry() {
	unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Flags: unix.SCHED_FLAG_RESET_ON_FORK, Nice: urgent}, 0)
}

// urgent is the starter's nice value.
const urgent = -15

// arguments reads the command line: package os, which knows it, is too big.
func arguments() []string {
	fd, err := syscall.Open("/proc/self/cmdline", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		die("/proc/self/cmdline", errno(err))
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
			die("lease "+text, syscall.EINVAL)
		}
		n = n*10 + int64(c-'0')
	}
	return n
}

// complain writes a line to the log.
func complain(subject string, err syscall.Errno) {
	line := "roost-starter: " + subject
	if err != 0 {
		line += ": " + err.Error()
	}
	syscall.Write(2, []byte(line+"\n"))
}

func die(subject string, err syscall.Errno) {
	complain(subject, err)
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
