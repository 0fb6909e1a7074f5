package starterclient

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/tasktrace"
	"github.com/roost-batch/roost/startd/starter/proto"
)

// SpawnOptions says how to spawn a starter.
type SpawnOptions struct {
	Binary string        // path of roost-starter
	Dir    string        // the claim's directory: there already, and closed to everybody else (0700)
	Lease  time.Duration // from now; the starter ends itself and its task when it runs out
	// called by one goroutine a starter, in order; it may send to the starter, and should
	// not block
	Events func(Event)
	// Join puts the new process where its limits are. It is called before the starter
	// gets its first order, so that no task is born outside. Nil: there are none.
	Join      func(pid int) error
	TaskGroup string // directory of the control group that tasks are to be born in; empty: none
	// Nested has the starter make sandboxes without root's rights: it gets a user
	// namespace of its own, in which its user has the same number.
	Nested bool
}

// Spawn starts a starter, in a session of its own. It returns as soon as the process
// exists: orders sent at once are carried out when it is ready. The listening socket is
// made here and inherited, so that there is no moment at which nobody listens.
func Spawn(opts SpawnOptions) (*Starter, error) {
	sock := filepath.Join(opts.Dir, "sock")
	l, conn, err := listenAndDial(sock)
	if err != nil {
		return nil, fmt.Errorf("starter in %s: %w", opts.Dir, err)
	}
	defer l.Close()
	pid, pidfd, err := fork(opts, l)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("starter %s: %w: %w", opts.Binary, err, roost.Unavailable)
	}
	if opts.Join != nil {
		if err := opts.Join(pid); err != nil {
			conn.Close()
			killUnstarted(pid, pidfd)
			return nil, fmt.Errorf("starter %s: %w", opts.Binary, err)
		}
	}
	return newStarter(opts.Dir, conn, opts.Events, pid, pidfd), nil
}

// killUnstarted kills a starter that never got an order.
func killUnstarted(pid, pidfd int) {
	unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0)
	unix.Close(pidfd)
	reapChild(pid)
}

func listenAndDial(path string) (l *os.File, conn *net.UnixConn, err error) {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return nil, nil, err
	}
	short, done, err := rpc.ShortPath(path)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
	if err != nil {
		return nil, nil, err
	}
	listener.SetUnlinkOnClose(false)
	defer listener.Close()
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, nil, err
	}
	if conn, err = net.DialUnix("unix", nil, &net.UnixAddr{Name: short, Net: "unix"}); err != nil {
		return nil, nil, err
	}
	if l, err = listener.File(); err != nil {
		conn.Close()
		return nil, nil, err
	}
	return l, conn, nil
}

// fork starts the program with descriptors 0 to 2 on null, null and the log, and the
// listener as 3. Its environment is about the Go runtime only: where the kernel gives
// huge pages to everybody, as Debian's does, a heap of a few pages would take two
// megabytes; and the signals that preempt goroutines would interrupt a thread that waits
// for a task (awaitEvents in startd/starter).
func fork(opts SpawnOptions, l *os.File) (pid, pidfd int, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, -1, err
	}
	defer null.Close()
	log, err := os.OpenFile(filepath.Join(opts.Dir, "starter.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return 0, -1, err
	}
	defer log.Close()
	env := []string{"GOMAXPROCS=1", "GOGC=10", "GODEBUG=disablethp=1,asyncpreemptoff=1"}
	for _, name := range []string{"ROOST_FAULT_DIR", tasktrace.FileVariable} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	err = withTimerSlack(starterTimerSlack, func() (err error) {
		pid, err = syscall.ForkExec(opts.Binary, []string{"roost-starter", opts.Dir, fmt.Sprint(int64(opts.Lease)),
			cmp.Or(opts.TaskGroup, "-")}, &syscall.ProcAttr{
			Dir: "/", Env: env, Files: []uintptr{null.Fd(), null.Fd(), log.Fd(), l.Fd()},
			Sys: opts.sysProcAttr(&pidfd),
		})
		return err
	})
	return pid, pidfd, err
}

// sysProcAttr returns how the process is made.
func (o *SpawnOptions) sysProcAttr(pidfd *int) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true, PidFD: pidfd}
	if o.Nested {
		NestUser(attr)
		attr.Cloneflags |= syscall.CLONE_NEWNS
		attr.AmbientCaps = proto.AllCapabilities() // over that namespace; without them they end with the exec
	}
	return attr
}

// NestUser gives a process a user namespace with this process's user and group, by the
// numbers that they have here. All others are nobody there (user_namespaces(7)).
func NestUser(attr *syscall.SysProcAttr) {
	uid, gid := os.Geteuid(), os.Getegid()
	attr.Cloneflags |= syscall.CLONE_NEWUSER
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
}

// starterTimerSlack is by how much the kernel may delay the timers of the Go runtime in a
// starter. Its monitor thread (sysmon) asks to be woken every 20 µs while anything runs,
// and looks for threads to preempt; a starter has nothing to preempt. The main thread of
// a starter sets the usual slack for itself and its tasks.
const starterTimerSlack = 100 * time.Millisecond

// withTimerSlack runs f on a thread with a timer slack, which processes that f forks
// inherit (prctl(2), PR_SET_TIMERSLACK).
func withTimerSlack(slack time.Duration, f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil {
		return f()
	}
	unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack), 0, 0, 0)
	defer unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(own), 0, 0, 0)
	return f()
}
