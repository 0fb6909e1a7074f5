package userfiles

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
)

// AgentCommand is the first argument of a program that must call ServeAgent with the
// socket on descriptor 3.
const AgentCommand = "files-agent"

// StartAgent starts an agent with a user's rights. It runs the program exe as "exe
// files-agent". If cred is this process's own user, a goroutine serves it instead and exe
// is not used. Only root can have agents of other users; for others that is
// roost.PermissionDenied.
func StartAgent(cred UserCredential, exe string) (*Agent, error) {
	if int(cred.UID) == os.Geteuid() {
		ours, theirs := net.Pipe()
		served := make(chan struct{})
		go func() {
			defer close(served)
			ServeAgent(theirs)
			theirs.Close()
		}()
		return &Agent{newAgentConn(ours, func() error { <-served; return nil })}, nil
	}
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("files agent of uid %d: %w: only root may act for another user", cred.UID,
			roost.PermissionDenied)
	}
	return startProcess(cred, exe)
}

func startProcess(cred UserCredential, exe string) (*Agent, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("files agent: %w: %w", err, roost.Unavailable)
	}
	theirs, file := os.NewFile(uintptr(fds[1]), "agent"), os.NewFile(uintptr(fds[0]), "agent")
	defer theirs.Close()
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, fmt.Errorf("files agent: %w: %w", err, roost.Unavailable)
	}
	cmd := exec.Command(exe, AgentCommand)
	cmd.Dir, cmd.Env, cmd.ExtraFiles = "/", []string{}, []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid: true, Credential: &syscall.Credential{Uid: cred.UID, Gid: cred.GID, Groups: cred.Groups},
	}
	if err := cmd.Start(); err != nil {
		conn.Close()
		return nil, fmt.Errorf("files agent %s: %w: %w", exe, err, roost.Unavailable)
	}
	return &Agent{newAgentConn(conn, func() error { return ignoreExitStatus(cmd.Wait()) })}, nil
}

// ignoreExitStatus drops the exit status of an agent: its work is done, and errors were
// returned as replies.
func ignoreExitStatus(err error) error {
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil
	}
	return err
}

// MakeScratch creates an empty directory parent/name for a user, closed to all others,
// and returns its path. The parent belongs to this process, and no other user may write
// there. So this process creates the directory itself, and the agent everything below it.
func MakeScratch(parent, name string, cred UserCredential) (string, error) {
	path := filepath.Join(parent, name)
	if name == "" || name != filepath.Base(name) || !filepath.IsLocal(name) {
		return "", fmt.Errorf("scratch directory %q: %w", name, roost.Invalid)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		return "", fmt.Errorf("scratch directory: %w: %w", err, roost.NoOutput)
	}
	if int(cred.UID) == os.Geteuid() {
		return path, nil
	}
	if err := os.Lchown(path, int(cred.UID), int(cred.GID)); err != nil {
		os.Remove(path)
		return "", fmt.Errorf("scratch directory: %w: %w", err, roost.NoOutput)
	}
	return path, nil
}
