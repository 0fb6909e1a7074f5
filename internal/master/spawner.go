package master

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"

	"github.com/roost-batch/roost/internal/daemon"
)

// readyFD is the descriptor of a daemon's pipe for reporting that it serves.
const readyFD = 3

// spawner starts processes from one thread that does not end before them.
// PR_SET_PDEATHSIG is sent when the thread that forked ends, and the threads of a Go
// program come and go.
type spawner struct {
	requests chan spawnCmd
	done     chan struct{}
	env      []string // further variables of daemons
}

type spawnCmd struct {
	argv  []string
	attr  *syscall.ProcAttr
	reply chan spawnResult
}

type spawnResult struct {
	pid int
	err error
}

func newSpawner(env ...string) *spawner {
	return &spawner{requests: make(chan spawnCmd), done: make(chan struct{}), env: env}
}

// run serves requests until stop is called.
func (s *spawner) run() {
	defer close(s.done)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for r := range s.requests {
		pid, err := syscall.ForkExec(r.argv[0], r.argv, r.attr)
		r.reply <- spawnResult{pid, err}
	}
}

func (s *spawner) stop() {
	close(s.requests)
	<-s.done
}

// start runs argv in a session of its own, so that Ctrl-C reaches only the master. It
// returns the reading ends of two pipes: one on which the daemon reports that it serves,
// and one with its output.
func (s *spawner) start(argv []string) (pid int, ready, output *os.File, err error) {
	var files [4]*os.File // reading and writing ends of both
	defer func() {
		for i, f := range files {
			if f != nil && (err != nil || i%2 == 1) {
				f.Close()
			}
		}
	}()
	if files[0], files[1], err = os.Pipe(); err != nil {
		return 0, nil, nil, err
	}
	if files[2], files[3], err = os.Pipe(); err != nil {
		return 0, nil, nil, err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, nil, nil, err
	}
	defer null.Close()
	reply := make(chan spawnResult, 1)
	s.requests <- spawnCmd{argv, &syscall.ProcAttr{
		Dir:   "/",
		Env:   append(append(daemonEnv(os.Environ()), s.env...), fmt.Sprintf("%s=%d", daemon.ReadyFD, readyFD)),
		Files: []uintptr{null.Fd(), files[3].Fd(), files[3].Fd(), files[1].Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	}, reply}
	got := <-reply
	if got.err != nil {
		return 0, nil, nil, fmt.Errorf("%s: %w", argv[0], got.err)
	}
	return got.pid, files[0], files[2], nil
}

// daemonEnv selects the environment variables that daemons need. Other variables of the
// user who ran "roost up" are not passed on.
func daemonEnv(all []string) []string {
	var env []string
	for _, pair := range all {
		name, _, _ := strings.Cut(pair, "=")
		switch {
		case name == daemon.ReadyFD, name == daemon.LogLevelsVariable:
		case strings.HasPrefix(name, "ROOST_"), strings.HasPrefix(name, "GO"), strings.HasPrefix(name, "LC_"):
			env = append(env, pair)
		case name == "PATH", name == "HOME", name == "USER", name == "LOGNAME", name == "TZ", name == "LANG",
			name == "TMPDIR", name == "SHELL":
			env = append(env, pair)
		}
	}
	return env
}

// waitReady waits for the line of daemon.ReportReady. It returns false if the daemon
// closes the pipe without it.
func waitReady(r io.Reader) bool {
	line := make([]byte, 16)
	n, _ := r.Read(line)
	return strings.HasPrefix(string(line[:n]), "ready")
}
