package idle

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boottime"
)

func TestKindsOfDevices(t *testing.T) {
	of := func(numbers ...int) kernelBitmap {
		b := make(kernelBitmap, (keyMax+1)/8)
		for _, n := range numbers {
			word := b[n/64*8:]
			binary.NativeEndian.PutUint64(word, binary.NativeEndian.Uint64(word)|1<<(n%64))
		}
		return b
	}
	for name, c := range map[string]struct {
		types, keys, moves, props kernelBitmap
		want                      deviceKind
	}{
		"keyboard":        {of(0, evKey), of(1, keyEnter, keySpace), of(), of(), everyMove},
		"volume wheel":    {of(0, evKey), of(keyVolumeUp), of(), of(), everyMove},
		"mouse":           {of(0, evKey, evRel), of(btnLeft), of(0, 1), of(), everyMove},
		"touch screen":    {of(0, evKey, evAbs), of(btnTouch), of(), of(1), everyMove},
		"tablet":          {of(0, evKey, evAbs), of(btnToolPen), of(), of(), everyMove},
		"game pad":        {of(0, evKey, evAbs), of(btnGamepad), of(), of(), keysOnly},
		"joystick":        {of(0, evKey, evAbs), of(btnJoystick), of(), of(), keysOnly},
		"power button":    {of(0, evKey), of(116), of(), of(), noPerson},
		"lid":             {of(0, evSwitch), of(), of(), of(), noPerson},
		"accelerometer":   {of(0, evKey, evAbs), of(btnGamepad), of(), of(propAccelerometer), noPerson},
		"pointing stick":  {of(0, evRel), of(), of(0, 1), of(), everyMove},
		"says it has key": {of(0), of(keyEnter), of(), of(), noPerson},
	} {
		if got := deviceKindOf(c.types, c.keys, c.moves, c.props); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
	if kernelBitmap(make([]byte, 8)).isSet(64) ||
		!(kernelBitmap{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}).isSet(63) {
		t.Error("bits are miscounted")
	}
}

// inputEventBytes returns a struct input_event.
func inputEventBytes(at roost.BootTime, kind, code uint16, value int32) []byte {
	b := binary.NativeEndian.AppendUint64(nil, uint64(at/time.Second))
	b = binary.NativeEndian.AppendUint64(b, uint64(at%time.Second/time.Microsecond))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = binary.NativeEndian.AppendUint16(b, code)
	return binary.NativeEndian.AppendUint32(b, uint32(value))
}

func TestLastTouch(t *testing.T) {
	const now = 5 * time.Second // this soon after boot, "long ago" is before it
	for name, c := range map[string]struct {
		events []byte
		kind   deviceKind
		at     roost.BootTime
		ok     bool
	}{
		"nothing": {nil, everyMove, 0, false},
		"a key": {append(inputEventBytes(now-5*time.Millisecond, 1, 30, 1),
			inputEventBytes(now, 0, 0, 0)...), everyMove, now - 5*time.Millisecond, true},
		"another clock":     {inputEventBytes(50*365*24*time.Hour, 1, 30, 1), everyMove, now, true},
		"no clock":          {inputEventBytes(0, 1, 30, 1), everyMove, now, true},
		"a scan code only":  {inputEventBytes(now, 4, 4, 30), everyMove, 0, false},
		"half an event":     {inputEventBytes(now, 1, 30, 1)[:20], everyMove, 0, false},
		"a finger":          {inputEventBytes(now, 3, 0, 100), everyMove, now, true},
		"a trembling stick": {inputEventBytes(now, 3, 0, 100), keysOnly, 0, false},
		"its button": {append(inputEventBytes(now, 3, 0, 100), inputEventBytes(now, 1, 304, 1)...), keysOnly,
			now, true},
		"more than it can do": {inputEventBytes(now, 0, synDropped, 0), keysOnly, now, true},
	} {
		if at, ok := lastInputEvent(c.events, c.kind, now); at != c.at || ok != c.ok {
			t.Errorf("%s: got %v, %v, want %v, %v", name, at, ok, c.at, c.ok)
		}
	}
}

// addFakeDevice makes a device in a directory: a FIFO whose name is its kind. It appears
// atomically, with a process at its other end.
func addFakeDevice(t *testing.T, dir, name, kind string) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		err = os.Rename(path, filepath.Join(dir, name+kind))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// fakeDevices returns a source for such a directory, with a real agent.
func fakeDevices(dir string) *InputDeviceSource {
	d := NewInputDevices("idle.test", "input-agent")
	d.deviceDir = dir
	d.probe = func(fd int) (deviceKind, string, error) {
		name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		switch name = filepath.Base(name); {
		case strings.HasSuffix(name, "keys"):
			return everyMove, name, err
		case strings.HasSuffix(name, "stick"):
			return keysOnly, name, err
		case strings.HasSuffix(name, "ill"):
			return noPerson, name, unix.EIO
		}
		return noPerson, name, err
	}
	return d
}

// findAgent finds the agent that this process has started.
func findAgent(t *testing.T) (pid int) {
	t.Helper()
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		text, _ := os.ReadFile(file)
		stat, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "stat"))
		_, rest, _ := strings.Cut(string(stat), ") ")
		if string(text) == "idle.test\x00input-agent\x00" && strings.Fields(rest)[1] == fmt.Sprint(os.Getpid()) {
			fmt.Sscan(filepath.Base(filepath.Dir(file)), &pid)
			return pid
		}
	}
	t.Fatal("no agent runs")
	return 0
}

func isWell(s SourceReading) bool { return s.Health == Healthy }

// TestKeysAreSeen checks the path from a key press to the reading. The agent in between
// must run as nobody, as far as its status shows.
func TestKeysAreSeen(t *testing.T) {
	dir := t.TempDir()
	keys := addFakeDevice(t, dir, "event0", "keys")
	addFakeDevice(t, dir, "event1", "lid")
	next := runSource(t, fakeDevices(dir))
	if s := next("a keyboard", func(SourceReading) bool {
		return true
	}); s.Health != Healthy || s.Coverage != Hardware || s.Text != "event0keys" || s.Input != 0 {
		t.Errorf("first it saw %+v", s)
	}
	pressed := boottime.Now()
	keys.Write(inputEventBytes(0, 1, 30, 1))
	s := next("a key", func(s SourceReading) bool { return s.Input != 0 })
	if s.Input < pressed || s.Input > boottime.Now() || s.ConsoleInput != s.Input {
		t.Errorf("pressed at %v, seen at %v, as of %v, %v", pressed, boottime.Now(), s.Input, s.ConsoleInput)
	}
	t.Logf("seen after %v", boottime.Now()-pressed)

	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", findAgent(t)))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"NoNewPrivs:\t1"}
	if os.Geteuid() == 0 {
		want = append(want, "Uid:\t65534\t65534\t65534\t65534", "Gid:\t65534\t65534\t65534\t65534",
			"CapPrm:\t0000000000000000", "CapEff:\t0000000000000000")
	}
	for _, line := range want {
		if !strings.Contains(string(status), line+"\n") {
			t.Errorf("the agent has rights: %q is not in its status", line)
		}
	}
}

// TestTypingIsReportedSeldom checks that a thousand keys cause only a few messages.
func TestTypingIsReportedSeldom(t *testing.T) {
	dir := t.TempDir()
	keys := addFakeDevice(t, dir, "event0", "keys")
	next := runSource(t, fakeDevices(dir))
	next("a keyboard", isWell)
	began := time.Now()
	for range 1000 {
		keys.Write(inputEventBytes(0, 1, 30, 1))
	}
	mark := boottime.Now().Truncate(time.Microsecond)
	keys.Write(inputEventBytes(mark, 1, 30, 1))
	published := 0
	// The last key is not lost: the agent reports it after its pause.
	next("the last key", func(s SourceReading) bool { published++; return s.Input >= mark })
	if most := int(time.Since(began)/inputReportInterval) + 2; published > most {
		t.Errorf("a thousand keys were told in %d sights, want at most %d", published, most)
	}
}

// TestDevicesComeAndGo adds and removes devices while the source watches.
func TestDevicesComeAndGo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "input")
	next := runSource(t, fakeDevices(dir))
	if s := next("nothing", func(SourceReading) bool { return true }); s.Health != Absent {
		t.Errorf("without a directory: %+v", s)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	keys := addFakeDevice(t, dir, "event3", "keys")
	next("a keyboard", isWell)
	stick := addFakeDevice(t, dir, "event4", "stick")
	next("a joystick", func(s SourceReading) bool { return s.Text == "event3keys, event4stick" })
	stick.Write(inputEventBytes(0, 3, 0, 77))
	keys.Write(inputEventBytes(0, 1, 30, 1))
	first := next("the key", func(s SourceReading) bool { return s.Input != 0 })
	stick.Write(inputEventBytes(0, 1, 304, 1))
	next("the button", func(s SourceReading) bool { return s.Input > first.Input })

	addFakeDevice(t, dir, "event5", "ill")
	next("a device that cannot be read", func(s SourceReading) bool {
		return s.Health == Broken && strings.HasSuffix(s.Text,
			"event5ill: input/output error; dmesg may say what is wrong with it")
	})
	if err := fmt.Errorf("event5: %w", unix.EACCES); deviceHint(err) != "run roost guard as root" {
		t.Errorf("%v: %s", err, deviceHint(err))
	}
	os.Remove(filepath.Join(dir, "event5ill"))
	os.Remove(filepath.Join(dir, "event4stick"))
	next("the keyboard alone", func(s SourceReading) bool { return s.Health == Healthy && s.Text == "event3keys" })
	os.Remove(filepath.Join(dir, "event3keys"))
	if s := next("nothing again", func(s SourceReading) bool { return s.Health == Absent }); s.Input <= first.Input {
		t.Errorf("what was seen is forgotten: %+v", s)
	}
}

// TestAgentDeathIsReported checks that the death of the agent is reported and the agent
// restarted.
func TestAgentDeathIsReported(t *testing.T) {
	dir := t.TempDir()
	keys := addFakeDevice(t, dir, "event0", "keys")
	next := runSource(t, fakeDevices(dir))
	next("a keyboard", isWell)
	if err := unix.Kill(findAgent(t), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	next("the agent's death", func(s SourceReading) bool {
		return s.Health == Broken && strings.Contains(s.Text, "signal: killed")
	})
	next("another agent", isWell)
	keys.Write(inputEventBytes(0, 1, 30, 1))
	next("a key", func(s SourceReading) bool { return s.Input != 0 })
}

// TestNoAgent checks that an agent that does not start, or does not answer, makes the
// source Broken.
func TestNoAgent(t *testing.T) {
	dir := t.TempDir()
	addFakeDevice(t, dir, "event0", "keys")
	d := fakeDevices(dir)
	d.agentProgram = func() *exec.Cmd { return exec.Command("/nowhere") }
	runSource(t, d)("no agent", func(s SourceReading) bool {
		return s.Health == Broken && strings.Contains(s.Text, "does not start")
	})
	d.agentProgram = func() *exec.Cmd { return exec.Command("/bin/false") }
	runSource(t, d)("a mute agent", func(s SourceReading) bool {
		return s.Health == Broken && strings.Contains(s.Text, "exit status 1")
	})
}
