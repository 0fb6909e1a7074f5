package e2e

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// testTerminal is a terminal in which roost runs.
type testTerminal struct {
	*testing.T
	window *os.File
	cmd    *exec.Cmd
	output bytes.Buffer
}

// startForTerminals starts a pool of one node with two cores, whose users have sh as
// login shell. The caller must stop it.
func startForTerminals(t *testing.T) *Pool {
	t.Helper()
	dir, err := os.MkdirTemp("", "pool") // t.TempDir is too long for socket names
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	p, err := Start(t.Context(), PoolOptions{Roost: program(t), Dir: dir, Nodes: 1, CPUs: 2,
		Env: []string{"SHELL=/bin/sh"}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// openTerminal runs a roost command in a terminal.
func openTerminal(t *testing.T, p *Pool, args ...string) *testTerminal {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), p.Roost, args...)
	cmd.Env = append(os.Environ(), "ROOST_DIR="+p.Dir, "TERM=vt100")
	window, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { window.Close() })
	return &testTerminal{T: t, window: window, cmd: cmd}
}

// awaitText reads until the terminal shows a text that it has not shown before.
func (w *testTerminal) awaitText(text string) {
	w.Helper()
	w.window.SetReadDeadline(time.Now().Add(awaitTimeout))
	buf := make([]byte, 4096)
	for {
		if i := strings.Index(w.output.String(), text); i >= 0 {
			w.output.Next(i + len(text))
			return
		}
		n, err := w.window.Read(buf)
		w.output.Write(buf[:n])
		if err != nil && n == 0 {
			w.Fatalf("it does not show %q (%v) but %q", text, err, w.output.String())
		}
	}
}

func (w *testTerminal) typeText(text string) {
	w.Helper()
	if _, err := io.WriteString(w.window, text); err != nil {
		w.Fatal(err)
	}
}

// TestShellTerminal uses a shell inside a task: keys, Ctrl-C, the window size and its
// end. It also checks the shell of a user who has gone.
func TestShellTerminal(t *testing.T) {
	t.Parallel()
	p := startForTerminals(t)
	defer p.Stop()
	id, stderr, code := p.Command(t.Context(), "run", "--detach", "--", "sleep", "1000")
	if code != 0 {
		t.Fatal(stderr)
	}
	id = strings.TrimSpace(id)
	awaitRunning(t, p, id)

	w := openTerminal(t, p, "ssh", id)
	w.typeText("PS1='$ '; stty -echo; echo term:$TERM; stty size\n")
	w.awaitText("term:vt100")
	w.awaitText("24 80")
	if err := pty.Setsize(w.window, &pty.Winsize{Rows: 40, Cols: 132}); err != nil {
		t.Fatal(err)
	}
	w.typeText("until [ \"$(stty size)\" = '40 132' ]; do sleep 0.05; done; echo grown\n")
	w.awaitText("grown")
	w.typeText("sh -c 'trap \"echo caught; exit\" INT; echo ready; while :; do sleep 0.05; done'\n")
	w.awaitText("ready")
	w.typeText("\x03")
	w.awaitText("caught")
	w.typeText("exit 5\n")
	if err := w.cmd.Wait(); w.cmd.ProcessState.ExitCode() != 5 {
		t.Errorf("it ended with %v, want exit status 5", err)
	}

	w = openTerminal(t, p, "ssh", id)
	w.typeText("echo alive; sleep 434343\n")
	w.awaitText("alive\r\n")
	awaitTrue(t, "the shell's command runs", func() bool { return hasCommandLine("sleep\x00434343") })
	w.cmd.Process.Signal(syscall.SIGKILL)
	w.cmd.Wait()
	awaitTrue(t, "nothing is left of a shell whose user has gone", func() bool {
		return !hasCommandLine("sleep\x00434343")
	})

	w = openTerminal(t, p, "ssh", id)
	w.typeText("echo $((40+2))\n")
	w.awaitText("42\r\n")
	if _, stderr, code := p.Command(t.Context(), "rm", id); code != 0 {
		t.Fatal(stderr)
	}
	w.awaitText("is over on this node")
	if w.cmd.Wait(); w.cmd.ProcessState.ExitCode() != 35 {
		t.Errorf("exit status %d after the task's end, want 35", w.cmd.ProcessState.ExitCode())
	}
}

func awaitRunning(t *testing.T, p *Pool, id string) {
	t.Helper()
	awaitTrue(t, id+" runs", func() bool {
		stdout, _, _ := p.mustQuery(t, "jobs", id)
		return strings.Contains(stdout, "running")
	})
}

func awaitTrue(t *testing.T, what string, is func() bool) {
	t.Helper()
	if !pollUntil(t.Context(), awaitTimeout, is) {
		t.Fatalf("after %v still not: %s", awaitTimeout, what)
	}
}
