package idle

import (
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// nobody is the user and the group that own nothing (user_namespaces(7), overflowuid).
const nobody = 65534

// startAgent starts a program with the other end of the returned connection as its
// descriptor 3, and with as few rights as can be had: no way to new ones, and, where this
// process is root's, another user, no other groups, and a network, processes and IPC of
// its own. Where there are no namespaces it goes without them.
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

// startSandboxed starts a program that can never gain rights. A thread cannot take that
// back for itself, so one that does nothing else says it: it ends with its goroutine.
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
