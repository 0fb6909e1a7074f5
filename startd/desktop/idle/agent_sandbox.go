package idle

import (
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// nobody is the uid and gid that own nothing (user_namespaces(7), overflowuid).
const nobody = 65534

// startAgent starts a program with the other end of the returned connection as its
// descriptor 3. The program gets as few rights as possible: it cannot gain any, and if
// this process is root it has another uid, no other groups, and its own network, PID and
// IPC namespaces. If namespaces are not available it runs without them.
func startAgent(program func() *exec.Cmd) (*net.UnixConn, *exec.Cmd, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	theirs := os.NewFile(uintptr(ends[1]), "agent's end")
	defer theirs.Close()
	conn, err := packetConn(os.NewFile(uintptr(ends[0]), "guard's end"))
	if err != nil {
		return nil, nil, err
	}
	var cmd *exec.Cmd
	for _, flags := range []uintptr{unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS, 0} {
		cmd = program()
		cmd.Dir, cmd.ExtraFiles = "/", []*os.File{theirs}
		cmd.Env = append(cmd.Env, "GOMAXPROCS=1", "GOTRACEBACK=none")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if os.Geteuid() == 0 {
			cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
			cmd.SysProcAttr.Cloneflags = flags
		}
		if err = startSandboxed(cmd); err == nil {
			return conn, cmd, nil
		}
	}
	conn.Close()
	return nil, nil, err
}

// startSandboxed starts a program that can never gain rights. A thread cannot undo that
// for itself, so a separate thread sets it and ends with its goroutine.
func startSandboxed(cmd *exec.Cmd) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		if err == nil {
			err = cmd.Start()
		}
		started <- err
	}()
	return <-started
}
