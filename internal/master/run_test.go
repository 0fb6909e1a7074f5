package master

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
)

// testTimeout bounds each wait of a test, in milliseconds.
const testTimeout = 60_000

// runningMaster is a master in a process of its own.
type runningMaster struct {
	*testing.T
	cmd    *exec.Cmd
	stdout *bufio.Reader
	log    *bufio.Reader
}

func startMaster(t *testing.T, args ...string) *runningMaster {
	t.Helper()
	r := &runningMaster{T: t, cmd: exec.Command(os.Args[0], args...)}
	r.cmd.Env = append(os.Environ(), testDaemonEnv+"=1")
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	log, err := r.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.stdout, r.log = bufio.NewReader(out), bufio.NewReader(log)
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if r.cmd.ProcessState == nil {
			r.cmd.Process.Kill()
			r.cmd.Wait()
		}
	})
	return r
}

// waitLine reads the master's output up to a line that contains all of want.
func (r *runningMaster) waitLine(from *bufio.Reader, want ...string) string {
	r.Helper()
	var seen strings.Builder
next:
	for {
		line, err := from.ReadString('\n')
		seen.WriteString(line)
		for _, w := range want {
			if !strings.Contains(line, w) {
				if err != nil {
					r.Fatalf("%v before a line with %q in\n%s", err, want, seen.String())
				}
				continue next
			}
		}
		return line
	}
}

// wait waits for the end of the master and returns the rest of its log and its exit
// status.
func (r *runningMaster) wait() (string, error) {
	rest, _ := io.ReadAll(r.log)
	io.Copy(io.Discard, r.stdout)
	return string(rest), r.cmd.Wait()
}

func (r *runningMaster) signal(sig syscall.Signal) {
	r.Helper()
	if err := r.cmd.Process.Signal(sig); err != nil {
		r.Fatal(err)
	}
}

// poolFile writes a node file with every daemon and two startds.
func poolFile(t *testing.T, behave ...string) (dir, file string) {
	t.Helper()
	dir = t.TempDir()
	file = filepath.Join(dir, "node.hcl")
	text := config.Write(&config.Node{
		Name: "test", Dir: dir, Collector: &config.CollectorSettings{}, Negotiator: &config.NegotiatorSettings{},
		Schedd:  &config.ScheddSettings{},
		Startds: []config.StartdSettings{{Name: "n1"}, {Name: "n2"}},
	})
	write(t, file, text)
	for i := 0; i+1 < len(behave); i += 2 {
		write(t, filepath.Join(dir, "behave-"+behave[i]), []byte(behave[i+1]))
	}
	return dir, file
}

func write(t *testing.T, file string, text []byte) {
	t.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// state returns the master's state file, and the daemon with a title in it.
func state(t *testing.T, dir, role, name string) (*NodeState, DaemonState) {
	t.Helper()
	s, running, err := ReadState(dir)
	if err != nil || !running {
		t.Fatalf("state: got running %v, %v", running, err)
	}
	for _, p := range s.Daemons {
		if p.Role == role && p.Name == name {
			return s, p
		}
	}
	t.Fatalf("no %s %s in %+v", role, name, s)
	return nil, DaemonState{}
}

// watch opens a descriptor that becomes readable when the process ends.
func watch(t *testing.T, pid int) int {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatalf("process %d: %v", pid, err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func awaitEnd(t *testing.T, what string, fd int) {
	t.Helper()
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, testTimeout)
		if err == unix.EINTR {
			continue
		}
		if n != 1 {
			t.Errorf("%s still lives", what)
		}
		return
	}
}

func TestPoolLifecycle(t *testing.T) {
	dir, file := poolFile(t)
	m := startMaster(t, "run", file)
	m.waitLine(m.stdout, "ready")
	s, schedd := state(t, dir, "schedd", "")
	if !s.Ready || s.PID != m.cmd.Process.Pid || len(s.Daemons) != 5 || !schedd.Ready || schedd.PID == 0 {
		t.Errorf("state: got %+v", s)
	}
	second := startMaster(t, "run", file)
	if output, err := second.wait(); err == nil || !strings.Contains(output, fmt.Sprintf("under process %d", s.PID)) {
		t.Errorf("a second master: got %v, %q", err, output)
	}
	m.signal(syscall.SIGTERM)
	if output, err := m.wait(); err != nil {
		t.Errorf("got %v\n%s", err, output)
	}
	if _, running, err := ReadState(dir); err == nil || running {
		t.Errorf("state after the end: got running %v, %v", running, err)
	}
	checkOrder(t, read(t, dir, "events"))
}

// TestGuardStartsFirstStopsLast checks the guard of a node with a desktop's policy. No
// startd may ever run without it.
func TestGuardStartsFirstStopsLast(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "node.hcl")
	write(t, file, config.Write(&config.Node{
		Name: "test", Dir: dir, Collector: &config.CollectorSettings{},
		Startds: []config.StartdSettings{{Name: "n1", Policy: config.OwnerPolicy{Preset: "desktop"}}},
	}))
	m := startMaster(t, "run", file)
	m.waitLine(m.stdout, "ready")
	m.signal(syscall.SIGTERM)
	if output, err := m.wait(); err != nil {
		t.Errorf("got %v\n%s", err, output)
	}
	events := read(t, dir, "events")
	for _, pair := range [][2]string{{"guard serves", "startd --name n1 starts"},
		{"startd --name n1 stops", "collector stops"}, {"collector stops", "guard stops"}} {
		if first, second := strings.Index(events, pair[0]), strings.Index(events, pair[1]); first < 0 || second < 0 ||
			first > second {
			t.Errorf("want %q before %q in\n%s", pair[0], pair[1], events)
		}
	}
}

// checkOrder checks the order of start and stop events of a pool against the dependencies
// of its daemons.
func checkOrder(t *testing.T, events string) {
	t.Helper()
	before := [][2]string{
		{"collector serves", "negotiator starts"}, {"collector serves", "startd --name n1 starts"},
		{"negotiator serves", "schedd starts"},
		{"startd --name n1 stops", "schedd stops"}, {"startd --name n2 stops", "schedd stops"},
		{"schedd stops", "negotiator stops"}, {"negotiator stops", "collector stops"},
	}
	for _, pair := range before {
		first, second := strings.Index(events, pair[0]), strings.Index(events, pair[1])
		if first < 0 || second < 0 || first > second {
			t.Errorf("want %q before %q in\n%s", pair[0], pair[1], events)
		}
	}
}

func TestRestart(t *testing.T) {
	dir, file := poolFile(t)
	m := startMaster(t, "run", file)
	m.waitLine(m.stdout, "ready")
	for restarts := 1; restarts <= 3; restarts++ {
		_, was := state(t, dir, "schedd", "")
		unix.Kill(was.PID, unix.SIGKILL)
		m.waitLine(m.log, "msg=died", "what=schedd", "killed by SIGKILL")
		m.waitLine(m.log, "msg=serves", "what=schedd")
	}
	m.signal(syscall.SIGINT)
	if output, err := m.wait(); err != nil {
		t.Errorf("got %v\n%s", err, output)
	}
}

func TestDaemonsDieWithMaster(t *testing.T) {
	dir, file := poolFile(t)
	m := startMaster(t, "run", file)
	m.waitLine(m.stdout, "ready")
	s, _ := state(t, dir, "schedd", "")
	fds := map[string]int{}
	for _, p := range s.Daemons {
		fds[p.Role+p.Name] = watch(t, p.PID)
	}
	m.signal(syscall.SIGKILL)
	for what, fd := range fds {
		awaitEnd(t, what, fd)
	}
	m.wait()
	if _, running, err := ReadState(dir); err != nil || running {
		t.Errorf("state after the kill: got running %v, %v", running, err)
	}
	again := startMaster(t, "run", file)
	again.waitLine(again.stdout, "ready")
	again.signal(syscall.SIGTERM)
	again.wait()
}

func TestLastLogLine(t *testing.T) {
	_, file := poolFile(t, "negotiator", "die")
	m := startMaster(t, "strict", file)
	output, err := m.wait()
	if err == nil || !strings.Contains(output,
		"negotiator did not start: unavailable: exit status 1: negotiator: the disk is on fire") {
		t.Errorf("got %v\n%s", err, output)
	}
}

func TestMasterKeepsRestarting(t *testing.T) {
	dir, file := poolFile(t, "negotiator", "die")
	m := startMaster(t, "run", file)
	m.waitLine(m.log, "msg=died", "restart_in=0s")
	m.waitLine(m.log, "msg=died", "restart_in=100ms", "the disk is on fire")
	if err := os.Remove(filepath.Join(dir, "behave-negotiator")); err != nil {
		t.Fatal(err)
	}
	m.waitLine(m.stdout, "ready")
	m.signal(syscall.SIGTERM)
	m.wait()
}

func TestUnresponsiveDaemonKilled(t *testing.T) {
	dir, file := poolFile(t, "startd", "stay")
	m := startMaster(t, "run", file)
	m.waitLine(m.stdout, "ready")
	m.signal(syscall.SIGINT)
	m.waitLine(m.log, "msg=stopping")
	m.signal(syscall.SIGINT)
	output, err := m.wait()
	if err != nil || !strings.Contains(output, "does not stop: killed") {
		t.Errorf("got %v\n%s", err, output)
	}
	if events := read(t, dir, "events"); strings.Contains(events, "startd --name n1 stops") {
		t.Errorf("it stopped by itself:\n%s", events)
	}
}

func TestUpLeavesNothingBehind(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("a long name ", 12), "pool")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "behave-startd"), []byte("leave a child"))
	m := startMaster(t, "up", dir)
	first := m.waitLine(m.stdout, "A pool is up")
	if !strings.Contains(first, "2 nodes, 8 cpus, in "+dir) {
		t.Errorf("got %q", first)
	}
	m.waitLine(m.stdout, "export ROOST_DIR='"+dir+"'")
	pid, err := strconv.Atoi(read(t, dir, "child"))
	if err != nil {
		t.Fatal(err)
	}
	child := watch(t, pid)
	for _, name := range []string{"run", "log", "etc"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: got %v, %v", name, info, err)
		}
	}
	if node := read(t, dir, "etc", "node.hcl"); !strings.Contains(node, `startd "n2.`) ||
		!bytes.Contains([]byte(node), []byte("cpus ")) {
		t.Errorf("node file: got\n%s", node)
	}
	m.signal(syscall.SIGINT)
	if output, err := m.wait(); err != nil {
		t.Errorf("got %v\n%s", err, output)
	}
	awaitEnd(t, "what a startd left", child)
}

func TestUpRefusesForeignDir(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o1777); err != nil {
		t.Fatal(err)
	}
	if err := Up(t.Context(), UpOptions{Dir: dir}); !errors.Is(err, roost.PermissionDenied) ||
		!strings.Contains(err.Error(), "others can write") {
		t.Errorf("got %v", err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("its mode: got %v, %v", info.Mode(), err)
	}
}
