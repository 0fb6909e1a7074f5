package starterclient_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/startd/starter/proto"
	"github.com/roost-batch/roost/startd/starterclient"
)

// TestMain builds the real program once and sets $ROOST_STARTER_BINARY to its path. With
// ROOST_TEST_BE=client the test binary acts as a startd that is to be killed, with
// ROOST_TEST_BE=listener as a task that serves connections.
func TestMain(m *testing.M) {
	if os.Getenv("ROOST_TEST_BE") == "client" {
		runClient()
	}
	if os.Getenv("ROOST_TEST_BE") == "listener" {
		runListener()
	}
	if os.Getenv("ROOST_TEST_BE") == "restorer" {
		runRestorer(os.Args[1], os.Args[2])
	}
	if os.Getenv(nestedVariable) != "" { // the starter is built
		os.Exit(m.Run())
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "roost-starter")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "roost-starter")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary,
		"github.com/roost-batch/roost/cmd/roost-starter")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build roost-starter: %v\n%s", err, out)
		return 1
	}
	os.Setenv("ROOST_STARTER_BINARY", binary)
	return m.Run()
}

// runClient spawns a starter in $ROOST_TEST_DIR and starts a task on it. It reports this
// on stdout and waits to be killed.
func runClient() {
	events := make(chan starterclient.Event, 16)
	s, err := starterclient.Spawn(starterclient.SpawnOptions{
		Binary: os.Getenv("ROOST_STARTER_BINARY"), Dir: os.Getenv("ROOST_TEST_DIR"), Lease: time.Minute,
		Events: func(e starterclient.Event) { events <- e },
	})
	if err == nil {
		o := shellCmd(1, os.Getenv("ROOST_TEST_SCRIPT"))
		o.IO = ioOf(os.Getenv("ROOST_TEST_DIR"), o.Attempt)
		if err = os.Mkdir(o.IO, 0o711); err == nil {
			err = s.Start(o)
		}
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(<-events)
	select {}
}

// runBothWays runs a test with and without sandboxes.
func runBothWays(t *testing.T, test func(t *testing.T)) {
	t.Run("plain", test)
	t.Run("boxed", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("only root makes boxes")
		}
		test(t)
	})
}

// shellCmd returns a task that runs a shell script.
func shellCmd(number uint32, script string) starterclient.StartCmd {
	return starterclient.StartCmd{
		Attempt: starterclient.TaskAttempt{Job: 1, Number: number}, Executable: "/bin/sh",
		Arguments: []string{"sh", "-c", script}, Cwd: "/",
		Environment: []string{"PATH=/usr/bin:/bin"}, UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), Umask: 0o022,
		Stdout: starterclient.Captured, Stderr: starterclient.Captured,
	}
}

// testStarter is a starter under test.
type testStarter struct {
	*starterclient.Starter
	t         testing.TB
	dir       string
	sandboxed bool
	events    chan starterclient.Event
}

func spawn(t testing.TB, lease time.Duration) *testStarter { return spawnWith(t, lease, false) }

func spawnWith(t testing.TB, lease time.Duration, nested bool) *testStarter {
	b := &testStarter{t: t, dir: t.TempDir(), events: make(chan starterclient.Event, 4096),
		sandboxed: strings.Contains(t.Name(), "/boxed")}
	s, err := starterclient.Spawn(starterclient.SpawnOptions{
		Binary: os.Getenv("ROOST_STARTER_BINARY"), Dir: b.dir, Lease: lease, Events: func(e starterclient.Event) {
			b.events <- e
		}, Nested: nested,
	})
	if err != nil {
		t.Fatal(err)
	}
	b.Starter = s
	t.Cleanup(func() {
		b.Release()
		b.Close()
	})
	return b
}

func (b *testStarter) next() starterclient.Event {
	b.t.Helper()
	select {
	case e := <-b.events:
		return e
	case <-time.After(time.Minute):
		b.t.Fatal("no event in 20 s")
		return nil
	}
}

// Start adds the attempt's directory, and a sandbox if the starter under test uses them.
func (b *testStarter) Start(o starterclient.StartCmd) error {
	if o.IO == "" {
		o.IO = ioOf(b.dir, o.Attempt)
	}
	if err := os.Mkdir(o.IO, 0o711); err != nil && !os.IsExist(err) {
		b.t.Fatal(err)
	}
	o.Sandbox.Wanted = b.sandboxed
	return b.Starter.Start(o)
}

// ioOf returns the directory of an attempt below that of its claim.
func ioOf(dir string, a starterclient.TaskAttempt) string {
	return filepath.Join(dir, fmt.Sprintf("io-%d.%d.%d", a.Job, a.Index, a.Number))
}

// begin starts a task and returns its pid.
func (b *testStarter) begin(o starterclient.StartCmd) int {
	b.t.Helper()
	if err := b.Start(o); err != nil {
		b.t.Fatal(err)
	}
	e := b.next()
	started, ok := e.(starterclient.TaskStarted)
	if !ok || started.Attempt != o.Attempt || started.PID <= 0 {
		b.t.Fatalf("got %+v, want Started of %+v", e, o.Attempt)
	}
	return started.PID
}

func (b *testStarter) end() starterclient.TaskExit {
	b.t.Helper()
	e := b.next()
	switch e := e.(type) {
	case starterclient.TaskExited:
		return e.Exit
	// a starter whose lease has expired ends with its task, and its message about that
	// may be lost, but not its journal
	case starterclient.ProcessDied:
		if e.LastState.Phase == proto.Ended {
			return e.LastState.Exit
		}
	}
	b.t.Fatalf("got %+v, want Exited", e)
	return starterclient.TaskExit{}
}

func (b *testStarter) read(a starterclient.TaskAttempt, stderr bool) string {
	b.t.Helper()
	text, err := os.ReadFile(starterclient.CapturedPath(ioOf(b.dir, a), stderr))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}
