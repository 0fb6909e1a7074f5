package starterclient_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
	"github.com/roost-batch/roost/startd/starterclient"
)

// newGatedStarter returns a starter whose sandboxes are not ready before open is called.
// To enter its alleged cgroup, a sandbox writes into a FIFO, which blocks until it has a
// reader. The cgroup's state is not writable, so that tasks are suspended by signals.
func newGatedStarter(t *testing.T) (b *testStarter, open func()) {
	group := t.TempDir()
	if err := os.Mkdir(filepath.Join(group, "freezer.state"), 0o700); err != nil {
		t.Fatal(err)
	}
	return newGatedStarterIn(t, group)
}

// newGatedStarterIn returns a gated starter that uses a directory as its cgroup.
func newGatedStarterIn(t *testing.T, group string) (b *testStarter, open func()) {
	if os.Geteuid() != 0 {
		t.Skip("only root makes boxes")
	}
	fifo := filepath.Join(group, "cgroup.procs")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	b = &testStarter{t: t, dir: t.TempDir(), sandboxed: true, events: make(chan starterclient.Event, 64)}
	var err error
	b.Starter, err = starterclient.Spawn(starterclient.SpawnOptions{
		Binary: os.Getenv("ROOST_STARTER_BINARY"), Dir: b.dir, Lease: time.Minute, Events: func(e starterclient.Event) {
			b.events <- e
		}, TaskGroup: group,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.Release()
		b.Close()
	})
	return b, func() {
		f, err := os.Open(fifo)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
	}
}

// startGated starts a task and sends commands while its sandbox is being set up. It then
// repeats the start, which is answered at once, after those commands.
func (b *testStarter) startGated(o starterclient.StartCmd, early func()) {
	b.t.Helper()
	if err := b.Start(o); err != nil {
		b.t.Fatal(err)
	}
	early()
	b.Start(o)
	if _, ok := b.next().(starterclient.TaskStarted); !ok {
		b.t.Fatal("its start is not known")
	}
}

// TestSignalledBeforeItBegan checks that a task gets earlier signals when it begins. They
// were sent while its sandbox was being set up, and must arrive before the notice ends.
func TestSignalledBeforeItBegan(t *testing.T) {
	for _, test := range []struct {
		name   string
		early  func(*testStarter, starterclient.TaskAttempt)
		signal int32
		cause  proto.EndCause
	}{
		{"stopped", func(b *testStarter, a starterclient.TaskAttempt) {
			b.Vacate(starterclient.StopCmd{Attempt: a, Cause: proto.Removed, Notice: int64(time.Minute)})
		}, 15, proto.Removed},
		{"stopped twice", func(b *testStarter, a starterclient.TaskAttempt) {
			b.Vacate(starterclient.StopCmd{Attempt: a, Cause: proto.Removed, Notice: int64(time.Minute)})
			b.Vacate(starterclient.StopCmd{Attempt: a, Cause: proto.Vacated, Notice: int64(time.Hour)})
		}, 15, proto.Removed},
		{"stopped by its own signal", func(b *testStarter, a starterclient.TaskAttempt) {
			b.Vacate(starterclient.StopCmd{Attempt: a, Cause: proto.Vacated, Notice: int64(time.Minute),
				Signal: uint32(unix.SIGUSR1)})
		}, 10, proto.Vacated},
		{"suspended and stopped", func(b *testStarter, a starterclient.TaskAttempt) {
			b.Suspend(a)
			b.Vacate(starterclient.StopCmd{Attempt: a, Cause: proto.Removed, Notice: int64(time.Minute)})
		}, 15, proto.Removed},
		{"signalled", func(b *testStarter, a starterclient.TaskAttempt) {
			b.Signal(a, unix.SIGUSR2)
		}, 12, proto.Exited},
	} {
		t.Run(test.name, func(t *testing.T) {
			b, open := newGatedStarter(t)
			o := shellCmd(1, "exec sleep 60")
			b.startGated(o, func() { test.early(b, o.Attempt) })
			open()
			if _, ok := b.next().(starterclient.TaskStarted); !ok {
				t.Fatal("it has not begun")
			}
			if exit := b.end(); exit.Signal != test.signal || exit.Cause != test.cause || exit.Step != proto.StepNone {
				t.Errorf("got %+v, want signal %d and cause %d", exit, test.signal, test.cause)
			}
		})
	}
}

// TestKilledBeforeItBegan checks that a sandbox that never gets ready is killed at the
// end of the notice. A server that does not answer can cause this.
func TestKilledBeforeItBegan(t *testing.T) {
	b, _ := newGatedStarter(t)
	o := shellCmd(1, "true")
	b.startGated(o, func() {
		b.Vacate(starterclient.StopCmd{Attempt: o.Attempt, Cause: proto.Removed, Notice: int64(100 * time.Millisecond)})
	})
	if exit := b.end(); exit.Signal != 9 || exit.Cause != proto.Removed {
		t.Errorf("got %+v, want that it was killed", exit)
	}
}

// TestSuspendedBeforeItBegan checks that a task stays suspended until it is resumed. It
// was suspended while its sandbox was being set up.
func TestSuspendedBeforeItBegan(t *testing.T) {
	b, open := newGatedStarter(t)
	o, cookie := markedCmd(t, 1, "exec sleep 60")
	b.startGated(o, func() { b.Suspend(o.Attempt) })
	open()
	b.next()
	state := func() string {
		pids := alive(t, cookie)
		if len(pids) == 0 {
			return "nothing runs"
		}
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", slices.Max(pids)))
		_, after, _ := strings.Cut(string(stat), ") ")
		return after[:min(1, len(after))]
	}
	for _, step := range []struct {
		do    func()
		stops bool
	}{{func() {}, true}, {func() { b.Resume(o.Attempt) }, false}} {
		step.do()
		for deadline := time.Now().Add(time.Minute); (state() == "T") != step.stops; unix.Poll(nil, 5) {
			if time.Now().After(deadline) {
				t.Fatalf("it is %s", state())
			}
		}
	}
}

// TestHeldBeforeItBegan checks that the starter does not freeze a task whose machine
// owner returned during the setup. The startd has frozen the cgroup above, and thaws
// nothing else.
func TestHeldBeforeItBegan(t *testing.T) {
	group := t.TempDir()
	state := filepath.Join(group, "freezer.state")
	if err := os.WriteFile(state, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b, open := newGatedStarterIn(t, group)
	o := shellCmd(1, "exec sleep 60")
	b.startGated(o, func() { b.SetFrozen(true) })
	open()
	b.next()
	b.Start(o) // its answer comes after all effects of the start
	b.next()
	if text, err := os.ReadFile(state); err != nil || len(text) > 0 {
		t.Errorf("its own group is %q, %v", text, err)
	}
	b.SetFrozen(false)
	b.Vacate(starterclient.StopCmd{Attempt: o.Attempt, Cause: proto.Removed, Notice: int64(time.Minute)})
	if exit := b.end(); exit.Signal != 15 {
		t.Errorf("got %+v, want that it heard SIGTERM", exit)
	}
}
