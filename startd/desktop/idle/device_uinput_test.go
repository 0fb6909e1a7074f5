package idle

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/internal/boottime"
)

// realKeyboard returns a function that presses keys of a kernel device. The device is
// made with uinput (Linux Documentation/input/uinput.rst). If the environment states that
// nobody uses the machine, it is the real keyboard, to which root may write events.
func realKeyboard(t *testing.T) (press func()) {
	t.Helper()
	f, err := os.OpenFile("/dev/uinput", os.O_WRONLY, 0)
	if err == nil {
		t.Cleanup(func() { f.Close() })
		setup := make([]byte, 92) // struct uinput_setup: bus, vendor, product, version, name, effects
		binary.NativeEndian.PutUint16(setup, 6)
		copy(setup[8:], "roost test keyboard")
		createDevice(t, f, setup)
		return func() { pressKey(t, f) }
	}
	if os.Getenv("ROOST_TEST_KEYBOARD") == "" {
		t.Skipf("SKIPPED: this kernel makes no input devices (%v), and the machine's own keyboard may be somebody's: "+
			"set ROOST_TEST_KEYBOARD=1 to have keys pressed on it", err)
	}
	events, _ := filepath.Glob("/dev/input/event*")
	for _, path := range events {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		if kind, name, err := probeDevice(int(f.Fd())); err == nil && kind == everyMove {
			t.Logf("%s is %s", path, name)
			return func() { pressKey(t, f) }
		}
	}
	t.Fatalf("no keyboard is among %v", events)
	return nil
}

// createDevice creates the device with UI_SET_EVBIT and UI_SET_KEYBIT, UI_DEV_SETUP and
// UI_DEV_CREATE.
func createDevice(t *testing.T, f *os.File, setup []byte) {
	t.Helper()
	do := func(request uint, arg int) {
		if err := unix.IoctlSetInt(int(f.Fd()), request, arg); err != nil {
			t.Fatal(err)
		}
	}
	const write = 1 << 30
	do(write|4<<16|'U'<<8|100, evKey)
	do(write|4<<16|'U'<<8|101, keySpace)
	do(write|4<<16|'U'<<8|101, keyEnter)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), uintptr(write|len(setup)<<16|'U'<<8|3),
		uintptr(unsafe.Pointer(&setup[0]))); errno != 0 {
		t.Fatal(errno)
	}
	do('U'<<8|1, 0)
}

func pressKey(t *testing.T, f *os.File) {
	t.Helper()
	for _, value := range []int32{1, 0} {
		if _, err := f.Write(append(inputEventBytes(0, evKey, keySpace, value),
			inputEventBytes(0, 0, 0, 0)...)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRealKeys checks the complete path of a key event, from the kernel device on.
func TestRealKeys(t *testing.T) {
	press := realKeyboard(t)
	next := runSource(t, NewInputDevices("idle.test", "input-agent"))
	next("the keyboard", func(s SourceReading) bool {
		return s.Health == Healthy && (strings.Contains(s.Text, "roost test keyboard") ||
			os.Getenv("ROOST_TEST_KEYBOARD") != "")
	})
	var took []time.Duration
	for range 20 {
		<-time.After(2 * inputReportInterval) // the agent pauses between its reports
		pressed := boottime.Now()
		press()
		s := next("a key", func(s SourceReading) bool { return s.Input >= pressed.Truncate(time.Microsecond) })
		took = append(took, boottime.Now()-pressed)
		if s.Input > boottime.Now() {
			t.Errorf("it was pressed in the future, at %v", s.Input)
		}
	}
	t.Logf("seen after %v", took)
}
