package shell

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
)

// StartOptions define what to run in a task, and as whom.
type StartOptions struct {
	Program    string              // this program, which is run as the agent
	UID, GID   uint32              // the task's owner
	Groups     []uint32            // supplementary groups
	Command    []string            // empty: the user's shell
	Login      bool                // run it as a login shell
	Terminal   bool                // use a terminal; false: three pipes
	Term       string              // the kind of terminal, TERM
	Rows, Cols uint16              // its size, 0 for unknown
	Variable   string              // NAME=value, added to the environment; empty: none
	Join       func(pid int) error // moves a process into the task's cgroups; nil: there are none
}

// Shell is a command that runs in a task. In, Out and Err are its streams. With a
// terminal Out contains all output and Err is nil.
type Shell struct {
	In, Err  *os.File
	Out      io.Reader
	files    []*os.File // our ends of all streams
	terminal bool
	cmd      *exec.Cmd
	ended    chan struct{} // closed when the command and all of its session have ended
}

// Start runs a command in a task. The task may be closed afterwards; the caller must wait
// for the end of the shell.
func Start(t *TaskHandle, o StartOptions) (*Shell, error) {
	s := &Shell{terminal: o.Terminal, ended: make(chan struct{})}
	theirs, err := s.openStreams(t, o)
	defer closeAll(theirs)
	if err == nil {
		err = s.startAgent(t, o, theirs)
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("shell: %w: %w", roost.Unavailable, err)
	}
	return s, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// openStreams creates a terminal or pipes, and returns the command's ends.
func (s *Shell) openStreams(t *TaskHandle, o StartOptions) ([]*os.File, error) {
	if o.Terminal {
		master, slave, err := openTerminal(t)
		if err != nil {
			return nil, fmt.Errorf("terminal: %w", err)
		}
		s.In, s.Out, s.files = master, ptyReader{master}, []*os.File{master}
		s.Resize(o.Rows, o.Cols)
		if o.changesUser() { // through its descriptor, so that no other file can be affected
			if err := slave.Chown(int(o.UID), -1); err != nil {
				return []*os.File{slave}, fmt.Errorf("terminal: %w", err)
			}
		}
		return []*os.File{slave, slave, slave}, nil
	}
	var theirs []*os.File
	for i := range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			return theirs, err
		}
		if i == 0 {
			r, w = w, r
		}
		s.files, theirs = append(s.files, r), append(theirs, w)
	}
	s.In, s.Out, s.Err = s.files[0], s.files[1], s.files[2]
	return theirs, nil
}

// openTerminal creates a terminal in the task's own /dev/pts, so that the task finds it
// there by name. If that fails it uses ours.
func openTerminal(t *TaskHandle) (master, slave *os.File, err error) {
	if t.root == nil {
		return pty.Open()
	}
	if master, slave, err = openTerminalBelow(t.root); err != nil {
		return pty.Open()
	}
	return master, slave, nil
}

// openTerminalBelow creates a terminal in the /dev/pts below root.
func openTerminalBelow(root *os.File) (master, slave *os.File, err error) {
	fd, err := unix.Openat2(int(root.Fd()), "dev/pts/ptmx", &unix.OpenHow{
		Flags:   unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC | unix.O_NONBLOCK,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, nil, err
	}
	master = os.NewFile(uintptr(fd), "ptmx")
	if err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err == nil {
		peer, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER,
			unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
		if errno == 0 {
			return master, os.NewFile(peer, "terminal"), nil
		}
		err = errno
	}
	master.Close()
	return nil, nil, err
}

// changesUser reports whether the user's uid differs from ours.
func (o StartOptions) changesUser() bool { return int(o.UID) != os.Geteuid() }

// startAgent starts the agent, moves it into the cgroups, and gives it the go-ahead.
func (s *Shell) startAgent(t *TaskHandle, o StartOptions, streams []*os.File) error {
	text, err := o.agentRequest(t).writeMemfd()
	if err != nil {
		return err
	}
	defer text.Close()
	gate, open, err := os.Pipe()
	if err != nil {
		return err
	}
	defer open.Close()
	defer gate.Close()
	places, done, err := t.paths()
	if err != nil {
		return err
	}
	defer done()
	s.cmd = exec.Command(o.Program, AgentCommand, stepJoin)
	s.cmd.Dir, s.cmd.Env = "/", []string{}
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = streams[0], streams[1], streams[2]
	s.cmd.ExtraFiles = append([]*os.File{text, gate}, places...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: o.Terminal, Pdeathsig: syscall.SIGKILL}
	if err := s.startCommand(); err != nil {
		return err
	}
	if o.Join != nil {
		err = o.Join(s.cmd.Process.Pid)
	}
	if err == nil {
		_, err = open.Write([]byte{1})
	}
	if err != nil {
		s.Kill()
		<-s.ended
	}
	return err
}

// startCommand starts the command from a thread that lives until it ends. For the kernel
// the end of that thread is the end of the parent (prctl(2), PR_SET_PDEATHSIG).
func (s *Shell) startCommand() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := s.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		defer close(s.ended)
		pid := s.cmd.Process.Pid
		for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
		}
		killSession(pid) // it has not been waited for, so the number cannot be reused
		_ = s.cmd.Wait() // its state contains the outcome
	}()
	err := <-started
	if err != nil {
		close(s.ended)
	}
	return err
}

// Resize sets the size of the terminal. It ignores 0, which means unknown.
func (s *Shell) Resize(rows, columns uint16) {
	if s.terminal && rows > 0 && columns > 0 {
		_ = pty.Setsize(s.In, &pty.Winsize{Rows: rows, Cols: columns}) // a terminal works without a size
	}
}

// CloseInput closes the command's input. It does nothing with a terminal, where Ctrl-D is
// a character.
func (s *Shell) CloseInput() {
	if !s.terminal {
		s.In.Close()
	}
}

// Ended is closed when the command has ended. There may still be output to read.
func (s *Shell) Ended() <-chan struct{} { return s.ended }

// Status waits for the end of the command and returns its exit code, or the signal that
// ended it.
func (s *Shell) Status() (code int, signal syscall.Signal) {
	<-s.ended
	if s.cmd.ProcessState == nil {
		return notFound, 0
	}
	status := s.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return 0, status.Signal()
	}
	return status.ExitStatus(), 0
}

// HangUp closes our ends of the streams: with a terminal the command's session gets
// SIGHUP. Only Ended, Status and Kill may be used afterwards.
func (s *Shell) HangUp() { s.Close() }

// Kill ends the command and all of its session. Its terminal hangs up when it is closed.
func (s *Shell) Kill() {
	select {
	case <-s.ended:
	default:
		_ = s.cmd.Process.Kill() // its session follows
	}
}

// Close closes our ends of the streams.
func (s *Shell) Close() {
	closeAll(s.files)
}
