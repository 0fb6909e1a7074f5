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
)

func TestKindsOfDevices(t *testing.T) {
	of := func(numbers ...int) bits {
		b := make(bits, (keyMax+1)/8)
		for _, n := range numbers {
			word := b[n/64*8:]
			binary.NativeEndian.PutUint64(word, binary.NativeEndian.Uint64(word)|1<<(n%64))
		}
		return b
	}
	for name, c := range map[string]struct {
		types, keys, moves, props bits
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
		if got := kindOf(c.types, c.keys, c.moves, c.props); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
	if bits(make([]byte, 8)).has(64) || !(bits{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}).has(63) {
		t.Error("bits are miscounted")
	}
}

// event is a struct input_event.
func event(at Instant, kind, code uint16, value int32) []byte {
	b := binary.NativeEndian.AppendUint64(nil, uint64(at/time.Second))
	b = binary.NativeEndian.AppendUint64(b, uint64(at%time.Second/time.Microsecond))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = binary.NativeEndian.AppendUint16(b, code)
	return binary.NativeEndian.AppendUint32(b, uint32(value))
}

func TestLastTouch(t *testing.T) {
	const now = 5 * time.Second // so soon after a boot "long ago" is never
	for name, c := range map[string]struct {
		events []byte
		kind   deviceKind
		at     Instant
		ok     bool
	}{
		"nothing":             {nil, everyMove, 0, false},
		"a key":               {append(event(now-5*time.Millisecond, 1, 30, 1), event(now, 0, 0, 0)...), everyMove, now - 5*time.Millisecond, true},
		"another clock":       {event(50*365*24*time.Hour, 1, 30, 1), everyMove, now, true},
		"no clock":            {event(0, 1, 30, 1), everyMove, now, true},
		"a scan code only":    {event(now, 4, 4, 30), everyMove, 0, false},
		"half an event":       {event(now, 1, 30, 1)[:20], everyMove, 0, false},
		"a finger":            {event(now, 3, 0, 100), everyMove, now, true},
		"a trembling stick":   {event(now, 3, 0, 100), keysOnly, 0, false},
		"its button":          {append(event(now, 3, 0, 100), event(now, 1, 304, 1)...), keysOnly, now, true},
		"more than it can do": {event(now, 0, synDropped, 0), keysOnly, now, true},
	} {
		if at, ok := lastTouch(c.events, c.kind, now); at != c.at || ok != c.ok {
			t.Errorf("%s: got %v, %v, want %v, %v", name, at, ok, c.at, c.ok)
		}
	}
}

// plugged makes a device in a directory: a FIFO whose name says what it is. It is there at once, with somebody at its other end.
func plugged(t *testing.T, dir, name, kind string) *os.File {
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

// fakeDevices is a source over such a directory, with a real agent.
func fakeDevices(dir string) *InputDevices {
	d := NewInputDevices("idle.test", "input-agent")
	d.dir = dir
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

// agentOf finds the agent that this process has started.
func agentOf(t *testing.T) (pid int) {
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

func well(s Sight) bool { return s.Health == Well }

// TestKeysAreSeen from the press to the sight, through an agent that is nobody; what it can be asked of the kernel is all in its status.
func TestKeysAreSeen(t *testing.T) {
	dir := t.TempDir()
	keys := plugged(t, dir, "event0", "keys")
	plugged(t, dir, "event1", "lid")
	next := watched(t, fakeDevices(dir))
	if s := next("a keyboard", func(Sight) bool { return true }); s.Health != Well || s.Reach != Hardware || s.Text != "event0keys" || s.Input != 0 {
		t.Errorf("first it saw %+v", s)
	}
	pressed := Now()
	keys.Write(event(0, 1, 30, 1))
	s := next("a key", func(s Sight) bool { return s.Input != 0 })
	if s.Input < pressed || s.Input > Now() || s.ConsoleInput != s.Input {
		t.Errorf("pressed at %v, seen at %v, as of %v, %v", pressed, Now(), s.Input, s.ConsoleInput)
	}
	t.Logf("seen after %v", Now()-pressed)

	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", agentOf(t)))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"NoNewPrivs:\t1"}
	if os.Geteuid() == 0 {
		want = append(want, "Uid:\t65534\t65534\t65534\t65534", "Gid:\t65534\t65534\t65534\t65534", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000")
	}
	for _, line := range want {
		if !strings.Contains(string(status), line+"\n") {
			t.Errorf("the agent has rights: %q is not in its status", line)
		}
	}
}

// TestTypingIsToldSeldom: a thousand keys are some messages.
func TestTypingIsToldSeldom(t *testing.T) {
	dir := t.TempDir()
	keys := plugged(t, dir, "event0", "keys")
	next := watched(t, fakeDevices(dir))
	next("a keyboard", well)
	began := time.Now()
	for range 1000 {
		keys.Write(event(0, 1, 30, 1))
	}
	mark := Now().Truncate(time.Microsecond)
	keys.Write(event(mark, 1, 30, 1))
	told := 0
	// The last one is not swallowed: the agent says it when its rest is over.
	next("the last key", func(s Sight) bool { told++; return s.Input >= mark })
	if most := int(time.Since(began)/tellEvery) + 2; told > most {
		t.Errorf("a thousand keys were told in %d sights, want at most %d", told, most)
	}
}

// TestDevicesComeAndGo while the source watches.
func TestDevicesComeAndGo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "input")
	next := watched(t, fakeDevices(dir))
	if s := next("nothing", func(Sight) bool { return true }); s.Health != Absent {
		t.Errorf("without a directory: %+v", s)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	keys := plugged(t, dir, "event3", "keys")
	next("a keyboard", well)
	stick := plugged(t, dir, "event4", "stick")
	next("a joystick", func(s Sight) bool { return s.Text == "event3keys, event4stick" })
	stick.Write(event(0, 3, 0, 77))
	keys.Write(event(0, 1, 30, 1))
	first := next("the key", func(s Sight) bool { return s.Input != 0 })
	stick.Write(event(0, 1, 304, 1))
	next("the button", func(s Sight) bool { return s.Input > first.Input })

	plugged(t, dir, "event5", "ill")
	next("a device that cannot be read", func(s Sight) bool {
		return s.Health == Broken && strings.HasSuffix(s.Text, "event5ill: input/output error; dmesg may say what is wrong with it")
	})
	if err := fmt.Errorf("event5: %w", unix.EACCES); cureDevice(err) != "run roost guard as root" {
		t.Errorf("%v: %s", err, cureDevice(err))
	}
	os.Remove(filepath.Join(dir, "event5ill"))
	os.Remove(filepath.Join(dir, "event4stick"))
	next("the keyboard alone", func(s Sight) bool { return s.Health == Well && s.Text == "event3keys" })
	os.Remove(filepath.Join(dir, "event3keys"))
	if s := next("nothing again", func(s Sight) bool { return s.Health == Absent }); s.Input <= first.Input {
		t.Errorf("what was seen is forgotten: %+v", s)
	}
}

// TestAgentsDeathIsTold and mended.
func TestAgentsDeathIsTold(t *testing.T) {
	dir := t.TempDir()
	keys := plugged(t, dir, "event0", "keys")
	next := watched(t, fakeDevices(dir))
	next("a keyboard", well)
	if err := unix.Kill(agentOf(t), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	next("the agent's death", func(s Sight) bool { return s.Health == Broken && strings.Contains(s.Text, "signal: killed") })
	next("another agent", well)
	keys.Write(event(0, 1, 30, 1))
	next("a key", func(s Sight) bool { return s.Input != 0 })
}

// TestNoAgent: one that cannot be started, or does not speak, is said to be broken.
func TestNoAgent(t *testing.T) {
	dir := t.TempDir()
	plugged(t, dir, "event0", "keys")
	d := fakeDevices(dir)
	d.program = func() *exec.Cmd { return exec.Command("/nowhere") }
	watched(t, d)("no agent", func(s Sight) bool { return s.Health == Broken && strings.Contains(s.Text, "does not start") })
	d.program = func() *exec.Cmd { return exec.Command("/bin/false") }
	watched(t, d)("a mute agent", func(s Sight) bool { return s.Health == Broken && strings.Contains(s.Text, "exit status 1") })
}
