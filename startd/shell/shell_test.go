package shell

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == AgentCommand {
		err := Agent(os.Args[2:])
		fmt.Fprintln(os.Stderr, "roost:", err)
		os.Exit(ExitCode(err))
	}
	os.Exit(m.Run())
}

// owner is the uid of an ordinary user without an account.
const owner = 12345

// testTask is a task in a directory of its own.
type testTask struct {
	pid, parent   int
	dir           string
	hasNamespaces bool
}

// startTestTask starts an idle task of the owner as root's child and, with space, in
// namespaces.
func startTestTask(t *testing.T, space bool) *testTask {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can run tasks of other users")
	}
	dir, err := os.MkdirTemp("", "shell-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chown(dir, owner, owner); err != nil {
		t.Fatal(err)
	}
	program := []string{"setpriv", "--reuid", fmt.Sprint(owner), "--regid", fmt.Sprint(owner), "--groups", "54321",
		"--no-new-privs", "sh", "-c",
		"umask 027; ulimit -n 99; renice -n 18 -p $$ >/dev/null; echo ready; exec sleep 1000"}
	rights := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if space {
		program = append([]string{"sh", "-c", `mount --make-rprivate / && mount -t proc proc /proc && "$@" & wait`,
			"sh"}, program...)
		all := []syscall.SysProcIDMap{{Size: 1 << 16}}
		rights.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC |
			syscall.CLONE_NEWUTS
		rights.UidMappings, rights.GidMappings, rights.GidMappingsEnableSetgroups = all, all, true
	}
	cmd := exec.Command(program[0], program[1:]...)
	cmd.Dir, cmd.Env = dir, []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "COLOUR=blue", "SHELL=/bin/sh", "TERM=dumb"}
	cmd.SysProcAttr = rights
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var output bytes.Buffer
	cmd.Stderr = &output
	if err := cmd.Start(); err != nil {
		t.Skipf("this machine makes no namespaces: %v", err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	if n, _ := io.ReadFull(out, make([]byte, len("ready\n"))); n == 0 {
		t.Skipf("this machine makes no namespaces: %s", output.String())
	}
	return &testTask{pid: cmd.Process.Pid, parent: os.Getpid(), dir: dir, hasNamespaces: space}
}

// run runs a command in a task and returns its output.
func (in *testTask) run(t *testing.T, o StartOptions,
	input string) (stdout, stderr string, code int, signal syscall.Signal) {
	t.Helper()
	task, err := OpenTask(in.pid, in.parent, owner)
	if err != nil {
		t.Fatal(err)
	}
	if task.HasNamespaces() != in.hasNamespaces {
		t.Errorf("namespaced: %v, want %v", task.HasNamespaces(), in.hasNamespaces)
	}
	o.Program, o.UID, o.GID, o.Groups = "/proc/self/exe", owner, owner, []uint32{54321}
	s, err := Start(task, o)
	task.Close()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	late := time.AfterFunc(time.Minute, s.Kill)
	defer late.Stop()
	var out, errs bytes.Buffer
	done := make(chan bool, 2)
	go func() {
		if o.Terminal { // input that is typed too early goes to whoever has the terminal then
			for buf := make([]byte, 1); !strings.Contains(out.String(), "go\r\n"); out.Write(buf) {
				if n, err := s.Out.Read(buf); n == 0 || err != nil {
					break
				}
			}
			io.WriteString(s.In, input)
		}
		io.Copy(&out, s.Out)
		done <- true
	}()
	go func() {
		if s.Err != nil {
			io.Copy(&errs, s.Err)
		}
		done <- true
	}()
	if !o.Terminal {
		io.WriteString(s.In, input)
		s.CloseInput()
	}
	<-done
	<-done
	code, signal = s.Status()
	return out.String(), errs.String(), code, signal
}

func runBothWays(t *testing.T, f func(t *testing.T, in *testTask)) {
	t.Run("plain", func(t *testing.T) { f(t, startTestTask(t, false)) })
	t.Run("namespaces", func(t *testing.T) { f(t, startTestTask(t, true)) })
}

// TestInside checks that a command has the task's rights, directory, environment, limits
// and namespaces. It must have nothing else.
func TestInside(t *testing.T) {
	runBothWays(t, func(t *testing.T, in *testTask) {
		stdout, stderr, code, _ := in.run(t, StartOptions{Command: []string{"sh", "-c",
			`id -u; id -g; id -G; umask; ulimit -n; pwd; env | sort; grep -E "^(CapEff|CapPrm|NoNewPrivs):" /proc/self/status; ls /proc/self/fd | wc -l; echo nice $(nice)
			for s in user mnt pid ipc uts; do readlink /proc/self/ns/$s; done; cat; echo oops >&2; exit 7`}}, "input\n")
		want := fmt.Sprintf("%d\n%d\n%d 54321\n0027\n99\n%s\nCOLOUR=blue\n", owner, owner, owner, in.dir)
		if !strings.HasPrefix(stdout, want) {
			t.Errorf("got\n%swant first\n%s", stdout, want)
		}
		for _, line := range []string{"CapEff:\t0000000000000000", "CapPrm:\t0000000000000000", "NoNewPrivs:\t1",
			"\n4\n", "\ninput\n", "\nnice 18\n", "TERM=dumb"} {
			if !strings.Contains(stdout, line) {
				t.Errorf("%q is missing in\n%s", line, stdout)
			}
		}
		for _, s := range []string{"user", "mnt", "pid", "ipc", "uts"} {
			theirs, err := os.Readlink(procFile(in.pid, filepath.Join("ns", s)))
			if err != nil || !strings.Contains(stdout, theirs) {
				t.Errorf("%s is not %s (%v) in\n%s", s, theirs, err, stdout)
			}
		}
		if stderr != "oops\n" || code != 7 {
			t.Errorf("stderr %q, exit status %d", stderr, code)
		}
	})
}

// TestEndings checks how the end of a command is reported.
func TestEndings(t *testing.T) {
	runBothWays(t, func(t *testing.T, in *testTask) {
		if _, stderr, code, _ := in.run(t, StartOptions{Command: []string{"no-such-command"}}, ""); code != 127 ||
			!strings.Contains(stderr, "no such command") {
			t.Errorf("no such command: %d, %q", code, stderr)
		}
		if _, stderr, code, _ := in.run(t, StartOptions{Command: []string{"/etc/passwd"}}, ""); code != 126 ||
			!strings.Contains(stderr, "permission denied") {
			t.Errorf("not executable: %d, %q", code, stderr)
		}
		if _, _, _, signal := in.run(t, StartOptions{Command: []string{"sh", "-c", "kill -TERM $$"}},
			""); signal != syscall.SIGTERM {
			t.Errorf("signal %v, want SIGTERM", signal)
		}
		if _, _, code, signal := in.run(t, StartOptions{Command: []string{"sh", "-c",
			"sleep 1000 & sleep 1000 & exit 3"}}, ""); code != 3 || signal != 0 {
			t.Errorf("with children left: %d, %v", code, signal)
		}
	})
}

// TestTerminal checks that there is a terminal, that it has a size, and that the user
// owns it. Ctrl-C must reach the command and nothing else.
func TestTerminal(t *testing.T) {
	runBothWays(t, func(t *testing.T, in *testTask) {
		stdout, _, code, _ := in.run(t, StartOptions{Terminal: true, Term: "vt100", Rows: 33, Cols: 111,
			Command: []string{"sh", "-c",
				`stty size; echo $TERM; test -t 0 && test -t 1 && test -t 2 && echo yes; stat -L -c %u /proc/self/fd/0; : < /dev/tty && echo own; trap "echo caught; exit 5" INT; echo go; read x`}}, "\x03")
		for _, line := range []string{"33 111\r\n", "vt100\r\n", "yes\r\n", fmt.Sprintf("%d\r\n", owner), "own\r\n"} {
			if !strings.Contains(stdout, line) {
				t.Errorf("%q is missing in %q", line, stdout)
			}
		}
		if code != 5 || !strings.Contains(stdout, "caught") {
			t.Errorf("exit status %d in %q", code, stdout)
		}
		stdout, _, code, _ = in.run(t, StartOptions{Terminal: true, Term: "vt100",
			Command: []string{"sh", "-c", "echo go; exec bash --norc -i"}}, "echo $((6*7)); exit 9\n")
		if !strings.Contains(stdout, "42\r\n") || strings.Contains(stdout, "job control") || code != 9 {
			t.Errorf("shell: exit status %d in %q", code, stdout)
		}
	})
}

// TestKill checks that nothing is left of a shell that is killed.
func TestKill(t *testing.T) {
	runBothWays(t, func(t *testing.T, in *testTask) {
		task, err := OpenTask(in.pid, in.parent, owner)
		if err != nil {
			t.Fatal(err)
		}
		defer task.Close()
		s, err := Start(task, StartOptions{Program: "/proc/self/exe", UID: owner, GID: owner,
			Command: []string{"sh", "-c", "sleep 1000 & echo go; exec sleep 1000"}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if _, err := io.ReadFull(s.Out, make([]byte, 3)); err != nil {
			t.Fatal(err)
		}
		s.Kill()
		<-s.Ended()
		all, err := processes()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range all {
			if p.session == s.cmd.Process.Pid && p.state != 'Z' {
				t.Errorf("process %d is left", p.pid)
			}
		}
		if err := unix.Kill(in.pid, 0); err != nil {
			t.Errorf("the task: %v", err)
		}
	})
}

// TestOpenRefuses checks that OpenTask refuses a pid that is not, or no longer, the
// task's.
func TestOpenRefuses(t *testing.T) {
	in := startTestTask(t, false)
	for name, open := range map[string]func() (*TaskHandle, error){
		"another's child": func() (*TaskHandle, error) { return OpenTask(in.pid, 1, owner) },
		"another user":    func() (*TaskHandle, error) { return OpenTask(in.pid, in.parent, owner+1) },
		"our own":         func() (*TaskHandle, error) { return OpenTask(os.Getpid(), os.Getppid(), owner) },
		"no such process": func() (*TaskHandle, error) { return OpenTask(1<<22-1, in.parent, owner) },
	} {
		if task, err := open(); err == nil {
			task.Close()
			t.Errorf("%s: it was opened", name)
		}
	}
}

// TestVariables checks what is read from an environment that the program may have
// overwritten.
func TestVariables(t *testing.T) {
	got := variables([]byte("A=1\x00B\x00=x\x00C=a=b\x00A=2\x00\x00D=\x00\xff\xfe=\xff"))
	want := []string{"A=1", "C=a=b", "D=", "\xff\xfe=\xff"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestLimits checks how limits are parsed.
func TestLimits(t *testing.T) {
	got := fmt.Sprint(parseLimits("Limit                     Soft Limit           Hard Limit           Units     \n" +
		"Max cpu time              unlimited            unlimited            seconds   \n" +
		"Max open files            99                   4096                 files     \n" +
		"Max nice priority         0                    0                    \nMax new thing  1 2 things\nMax " +
		"data size soon later bytes\n"))
	want := fmt.Sprint([]resourceLimit{{0, unix.RLIM_INFINITY, unix.RLIM_INFINITY}, {unix.RLIMIT_NOFILE, 99, 4096},
		{13, 0, 0}})
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if own, err := readLimits(os.Getpid()); err != nil || len(own) != len(limitNames()) {
		t.Errorf("our own: %v, %v", own, err)
	}
}
