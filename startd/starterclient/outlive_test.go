package starterclient_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/startd/starter/proto"
	"github.com/roost-batch/roost/startd/starterclient"
)

// spawnOrphan lets another process spawn a starter with a task, and kills that process.
// It returns the claim's directory.
func spawnOrphan(t *testing.T, script string) string {
	t.Helper()
	dir := t.TempDir()
	client := exec.Command(os.Args[0])
	client.Env = append(os.Environ(), "ROOST_TEST_BE=client", "ROOST_TEST_DIR="+dir, "ROOST_TEST_SCRIPT="+script)
	out, err := client.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.Contains(line, "Attempt") && !strings.Contains(line, "{{1 0 1}") {
		t.Fatalf("the client said %q, %v", line, err)
	}
	client.Process.Kill()
	client.Wait()
	return dir
}

func adoptStarter(t *testing.T, dir string) (*testStarter, starterclient.ProcessState) {
	t.Helper()
	b := &testStarter{t: t, dir: dir, events: make(chan starterclient.Event, 64)}
	s, state, err := starterclient.Adopt(dir, func(e starterclient.Event) { b.events <- e })
	if err != nil {
		t.Fatal(err)
	}
	b.Starter = s
	t.Cleanup(func() {
		b.Release()
		b.Close()
	})
	return b, state
}

func TestAdoptRunningTask(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "go")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	dir := spawnOrphan(t, "read word <"+fifo+"; exit 42")
	b, state := adoptStarter(t, dir)
	if state.Phase != proto.Running || state.Attempt != shellCmd(1, "").Attempt || state.PID <= 0 || state.Since <= 0 {
		t.Errorf("got %+v, want the running attempt", state)
	}
	if err := os.WriteFile(fifo, []byte("word\n"), 0); err != nil {
		t.Fatal(err)
	}
	if exit := b.end(); exit.Code != 42 || exit.Cause != proto.Exited {
		t.Errorf("got %+v, want 42", exit)
	}
}

func TestAdoptTaskThatEndedMeanwhile(t *testing.T) {
	dir := spawnOrphan(t, "exit 43")
	for deadline := time.Now().Add(time.Minute); ; unix.Poll(nil, 5) {
		if state, err := starterclient.ReadJournal(dir); err == nil && state.Phase == proto.Ended {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no exit in the journal")
		}
	}
	b, state := adoptStarter(t, dir)
	if state.Phase != proto.Ended || state.Exit.Code != 43 {
		t.Errorf("got %+v, want 43", state)
	}
	if exit := b.end(); exit.Code != 43 {
		t.Errorf("got %+v, want 43", exit)
	}
	b.DiscardAttempt(state.Attempt)
	b.begin(shellCmd(2, "exit 44"))
	if exit := b.end(); exit.Code != 44 {
		t.Errorf("got %+v, want 44", exit)
	}
}

func TestNewerConnectionFencesOlder(t *testing.T) {
	t.Parallel()
	b := spawn(t, time.Minute)
	o := shellCmd(1, "sleep 60")
	b.begin(o)
	newer, state := adoptStarter(t, b.dir)
	if state.Phase != proto.Running {
		t.Fatalf("got %+v", state)
	}
	b.Vacate(starterclient.StopCmd{Attempt: o.Attempt, Fast: true})
	newer.Vacate(starterclient.StopCmd{Attempt: o.Attempt, Fast: true, Cause: proto.Removed, Reason: "by the newer"})
	if exit := newer.end(); exit.Reason != "by the newer" {
		t.Errorf("got %+v", exit)
	}
	if gone, ok := b.next().(starterclient.ProcessDied); !ok || !errors.Is(gone.Err, roost.Stale) {
		t.Errorf("the older was told %+v, want that the starter lives on", gone)
	}
}

func TestLeaseEndsWhileNobodyIsThere(t *testing.T) {
	dir := t.TempDir()
	events := make(chan starterclient.Event, 16)
	s, err := starterclient.Spawn(starterclient.SpawnOptions{
		Binary: os.Getenv("ROOST_STARTER_BINARY"), Dir: dir, Lease: time.Minute, Events: func(e starterclient.Event) {
			events <- e
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	o, cookie := markedCmd(t, 1, "trap '' TERM; setsid sleep 60 & sleep 60")
	o.Lease, o.IO = int64(300*time.Millisecond), ioOf(dir, o.Attempt)
	if err := os.Mkdir(o.IO, 0o711); err != nil {
		t.Fatal(err)
	}
	s.Start(o)
	<-events
	s.Close()
	for deadline := time.Now().Add(time.Minute); ; unix.Poll(nil, 10) {
		state, err := starterclient.ReadJournal(dir)
		if err == nil && state.Phase == proto.Ended {
			if state.Exit.Cause != proto.LeaseOver || state.Exit.Signal != 9 {
				t.Errorf("got %+v, want an end by the lease", state.Exit)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("still %v", state.Phase)
		}
	}
	if left := alive(t, cookie); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
	for range 200 {
		_, state, err := starterclient.Adopt(dir, func(starterclient.Event) {})
		if err != nil {
			if !errors.Is(err, starterclient.ErrGone) || !errors.Is(err, roost.Finished) ||
				state.Exit.Cause != proto.LeaseOver {
				t.Errorf("got %+v, %v, want gone, and the truth", state, err)
			}
			return
		}
		unix.Poll(nil, 10)
	}
	t.Error("the starter lives on without a lease")
}

func TestRenewedLeaseHolds(t *testing.T) { runBothWays(t, testRenewedLeaseHolds) }

func testRenewedLeaseHolds(t *testing.T) {
	b := spawn(t, 200*time.Millisecond)
	b.RenewLease(time.Minute)
	b.begin(shellCmd(1, "sleep 0.5; exit 9"))
	if exit := b.end(); exit.Code != 9 {
		t.Errorf("got %+v", exit)
	}
}

func TestIdleStarterEndsWithItsLease(t *testing.T) {
	b := spawn(t, 100*time.Millisecond)
	if gone, ok := b.next().(starterclient.ProcessDied); !ok || gone.Err != nil || gone.LastState.Phase != proto.Idle {
		t.Errorf("got %+v, want Gone", gone)
	}
}

func TestKilledStarterTakesItsTaskAlong(t *testing.T) {
	runBothWays(t, testKilledStarterTakesItsTaskAlong)
}

func testKilledStarterTakesItsTaskAlong(t *testing.T) {
	b := spawn(t, time.Minute)
	o, cookie := markedCmd(t, 1, "echo ready; sleep 60 & setsid sleep 60 & exec sleep 60")
	pid := b.begin(o)
	b.waitFor(o.Attempt, "ready")
	_, state := adoptStarter(t, b.dir)
	if err := unix.Kill(int(state.Starter), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	gone, ok := b.next().(starterclient.ProcessDied)
	if !ok || gone.LastState.Phase != proto.Running || gone.LastState.Attempt != o.Attempt ||
		gone.LastState.PID != int64(pid) {
		t.Errorf("got %+v, want Gone with the running attempt", gone)
	}
	if _, err := starterclient.Sweep(cookie, ""); err != nil {
		t.Error(err)
	}
	if left := alive(t, cookie); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
	if _, state, err := starterclient.Adopt(b.dir, nil); !errors.Is(err, starterclient.ErrGone) ||
		state.Attempt != o.Attempt {
		t.Errorf("got %+v, %v, want ErrGone", state, err)
	}
}

func TestRelease(t *testing.T) { runBothWays(t, testRelease) }

func testRelease(t *testing.T) {
	b := spawn(t, time.Minute)
	b.begin(shellCmd(1, "sleep 60"))
	b.Release()
	if exit := b.end(); exit.Cause != proto.Removed {
		t.Errorf("got %+v", exit)
	}
	if gone, ok := b.next().(starterclient.ProcessDied); !ok || gone.Err != nil {
		t.Errorf("got %+v, want Gone", gone)
	}
}

func TestSpawnWithoutProgram(t *testing.T) {
	_, err := starterclient.Spawn(starterclient.SpawnOptions{Binary: "/no/such", Dir: t.TempDir(), Lease: time.Minute,
		Events: func(starterclient.Event) {}})
	if !errors.Is(err, roost.Unavailable) {
		t.Errorf("got %v, want unavailable", err)
	}
}
