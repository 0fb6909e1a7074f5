package idle

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boottime"
)

// watchTerminals runs the source until the test ends.
func watchTerminals(t *testing.T, ours func(uint64) bool) <-chan SourceReading {
	ctx, cancel := context.WithCancel(t.Context())
	readings, done := make(chan SourceReading, 64), make(chan struct{})
	go func() {
		defer close(done)
		NewTerminals(ours).Run(ctx, func(s SourceReading) {
			select {
			case readings <- s:
			case <-ctx.Done():
			}
		})
	}()
	t.Cleanup(func() { cancel(); <-done })
	return readings
}

func openPTY(t *testing.T) (master, slave *os.File) {
	master, slave, err := pty.Open()
	if err != nil {
		t.Skipf("no terminal can be made here: %v", err)
	}
	t.Cleanup(func() { master.Close(); slave.Close() })
	return master, slave
}

func device(t *testing.T, f *os.File) uint64 {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	return st.Rdev
}

// TestAKeyIsNoticed types into a real terminal that a process reads.
func TestAKeyIsNoticed(t *testing.T) {
	master, slave := openPTY(t)
	readings := watchTerminals(t, func(uint64) bool { return false })
	first := <-readings
	if first.Health != Healthy || first.Coverage != Terminal {
		t.Fatalf("at first: %+v", first)
	}
	var worst time.Duration
	for range 5 {
		before := boottime.Now()
		go func() {
			master.Write([]byte("x\n"))
			slave.Read(make([]byte, 8))
		}()
		for s := range readings {
			if s.Input >= before {
				if s.ConsoleInput != 0 {
					t.Errorf("a terminal of no console is one: %+v", s)
				}
				worst = max(worst, boottime.Now()-before)
				break
			}
		}
	}
	t.Logf("from the key to the source's word: %v at worst", worst)
}

// TestAKeyBefore checks that a key from just before the start of the source counts at its
// start. The kernel records such times only to eight seconds.
func TestAKeyBefore(t *testing.T) {
	master, slave := openPTY(t)
	var before roost.BootTime
	for range 3 { // the kernel may record the first one only
		before = boottime.Now()
		if _, err := master.Write([]byte("x\n")); err != nil {
			t.Fatal(err)
		}
		if _, err := slave.Read(make([]byte, 8)); err != nil {
			t.Fatal(err)
		}
	}
	if first := <-watchTerminals(t, func(uint64) bool { return false }); first.Input < before {
		t.Errorf("noticed at %v, typed at %v", first.Input, before)
	}
}

// TestAKeyMeanwhile checks that a key between the scan of a terminal and its watch is
// detected.
func TestAKeyMeanwhile(t *testing.T) {
	master, slave := openPTY(t)
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(slave.Name(), old, old); err != nil {
		t.Skipf("the time of a terminal cannot be set here: %v", err)
	}
	source := NewTerminals(func(terminal uint64) bool { return terminal != device(t, slave) })
	w := &terminalWatch{source: source, known: map[string]*terminalState{}, byWatch: map[int32]*terminalState{}}
	w.scanTerminals(boottime.Now())
	before := boottime.Now()
	master.Write([]byte("x\n"))
	slave.Read(make([]byte, 8))
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	w.inotify = os.NewFile(uintptr(fd), "inotify")
	defer w.inotify.Close()
	if w.scanTerminals(boottime.Now()); w.reading.Input < before || w.known[slave.Name()].polled {
		t.Errorf("noticed at %v, typed at %v, the kernel tells of it: %v", w.reading.Input, before,
			!w.known[slave.Name()].polled)
	}
}

// TestATasksTerminalIsNobodys checks that input in a task's shell does not count as the
// owner's. A new terminal must be found at once.
func TestATasksTerminalIsNobodys(t *testing.T) {
	asked := make(chan uint64, 1000) // a machine with a screen has 64 text consoles, and each is checked
	var task atomic.Uint64
	readings := watchTerminals(t, func(dev uint64) bool { asked <- dev; return dev == task.Load() })
	<-readings
	for len(asked) > 0 {
		<-asked
	}
	master, slave := openPTY(t)
	task.Store(device(t, slave))
	// The test reads the task's terminal until the source has checked its owner; the next
	// reading must be for a terminal outside tasks.
	for typed := false; !typed; {
		master.Write([]byte("x\n"))
		slave.Read(make([]byte, 8))
		select {
		case dev := <-asked:
			typed = dev == task.Load()
		case <-time.After(10 * time.Millisecond):
		}
	}
	mine, theirs := openPTY(t)
	before := boottime.Now()
	for {
		mine.Write([]byte("x\n"))
		theirs.Read(make([]byte, 8))
		select {
		case s := <-readings:
			if s.Input >= before {
				return
			}
		case dev := <-asked:
			if dev == task.Load() {
				t.Fatal("asked again about a terminal that is known for a task's")
			}
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func TestWhichTerminalsAreTheConsole(t *testing.T) {
	for path, want := range map[string]bool{"/dev/tty1": true, "/dev/tty63": true, "/dev/ttyS0": false,
		"/dev/pts/3": false, "/dev/ttyUSB0": false, "/dev/tty": false} {
		if got := isVirtualConsole(path); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}
