package idle

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/script"
)

// TestLogins checks the meaning of sessions. The lines "id user seat-or-net type class …"
// are the sessions at a time, and the output is the reading.
func TestLogins(t *testing.T) {
	script.Run(t, "testdata/logins.txt", func(t *testing.T) func(script.ScriptCommand) string {
		tracker := &sessionTracker{}
		return func(s script.ScriptCommand) string {
			now := seconds(t, s.Args[0])
			var sessions []loginSession
			for _, line := range s.Input {
				w := strings.Fields(line)
				l := loginSession{id: w[0], user: w[1], kind: w[3], class: w[4], remote: w[2] == "net"}
				if strings.HasPrefix(w[2], "seat") {
					l.seat = w[2]
				}
				for _, word := range w[5:] {
					name, value, _ := strings.Cut(word, "=")
					switch name {
					case "active":
						l.active = true
					case "locked":
						l.locked = true
					case "tty":
						l.tty = value
					case "idle", "busy":
						l.idle, l.idleSince = name == "idle", seconds(t, value)
					}
				}
				sessions = append(sessions, l)
			}
			v := tracker.update(sessions, now)
			out := fmt.Sprintf("%s\ninput %v, at the console %v", v.Text, v.Input, v.ConsoleInput)
			if v.Coverage == Console {
				out += fmt.Sprintf(", believed %v", v.IndirectInput)
			}
			return out
		}
	})
}

func seconds(t *testing.T, text string) roost.BootTime {
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestInhibitors(t *testing.T) {
	ours := func(pid int) bool { return pid == 7 }
	for _, c := range []struct {
		of   logindInhibitor
		want string
	}{
		{logindInhibitor{What: "idle", Who: "zoom", Why: "in a meeting", Mode: "block"}, "zoom: in a meeting"},
		{logindInhibitor{What: "sleep:idle", Who: "mpv", Mode: "block-weak"}, "mpv"},
		{logindInhibitor{What: "idle", Who: "a\x1b[31m", Why: strings.Repeat("é", 100), Mode: "block"},
			"a?[31m: " + strings.Repeat("é", 80)},
		{logindInhibitor{What: "idle", Who: "task", Why: "my work", Mode: "block", PID: 7}, ""},
		{logindInhibitor{What: "sleep:shutdown", Who: "apt", Why: "an update", Mode: "block"}, ""},
		{logindInhibitor{What: "idle", Who: "x", Why: "y", Mode: "delay"}, ""},
	} {
		if got := inhibitReason([]logindInhibitor{c.of}, ours); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.of, got, c.want)
		}
	}
}

// startBus starts a bus for the test.
func startBus(t *testing.T) (address string, stop func()) {
	t.Helper()
	if _, err := exec.LookPath("dbus-daemon"); err != nil {
		t.Skip("SKIPPED: dbus-daemon is not installed: nothing is known of logind here")
	}
	address = "unix:path=" + filepath.Join(t.TempDir(), "bus")
	cmd := exec.Command("dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address=1",
		"--address="+address)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1000)); err != nil { // it prints its address when it listens
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() { cmd.Process.Kill(); cmd.Wait() })
	t.Cleanup(stop)
	return address, stop
}

// fakeLogind implements logind on a bus.
type fakeLogind struct {
	conn *dbus.Conn

	mu         sync.Mutex
	sessions   map[string]map[string]dbus.Variant // by id
	inhibitors []logindInhibitor
	sleeping   bool
	lastCaller dbus.Sender // bus name of the latest caller
	delay      *os.File    // our end of the delay inhibitor that was handed out
	blocked    chan struct{}
}

func newFakeLogind(t *testing.T, address string) *fakeLogind {
	t.Helper()
	conn, err := dbus.Connect(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	f := &fakeLogind{conn: conn, sessions: map[string]map[string]dbus.Variant{}}
	for _, iface := range []string{loginManager, properties} {
		if err := conn.Export(f, loginPath, iface); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.RequestName(loginService, dbus.NameFlagDoNotQueue); err != nil {
		t.Fatal(err)
	}
	return f
}

type logindSessionEntry struct {
	ID   string
	UID  uint32
	User string
	Seat string
	Path dbus.ObjectPath
}

func (f *fakeLogind) ListSessions() (all []logindSessionEntry, _ *dbus.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, p := range f.sessions {
		all = append(all, logindSessionEntry{id, 1000, "ann", property[string](p, "seat"), sessionPath(id)})
	}
	return all, nil
}

func (f *fakeLogind) ListInhibitors() ([]logindInhibitor, *dbus.Error) {
	f.mu.Lock()
	stuck := f.blocked
	defer f.mu.Unlock()
	if stuck != nil {
		f.mu.Unlock()
		<-stuck
		f.mu.Lock()
	}
	return f.inhibitors, nil
}

func (f *fakeLogind) Inhibit(what, who, why, mode string) (dbus.UnixFD, *dbus.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil || what != "sleep" || mode != "delay" {
		return 0, dbus.MakeFailedError(fmt.Errorf("%v, %s %s", err, what, mode))
	}
	f.delay = os.NewFile(uintptr(p[0]), "delay")
	time.AfterFunc(time.Second, func() { unix.Close(p[1]) }) // when it has been sent
	return dbus.UnixFD(p[1]), nil
}

func (f *fakeLogind) Get(asker dbus.Sender, iface, name string) (dbus.Variant, *dbus.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lastCaller = asker
	return dbus.MakeVariant(f.sleeping), nil
}

// fakeSession is the bus object of one session.
type fakeSession struct {
	f  *fakeLogind
	id string
}

func (s fakeSession) GetAll(iface string) (map[string]dbus.Variant, *dbus.Error) {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	if p := s.f.sessions[s.id]; p != nil {
		return p, nil
	}
	return nil, dbus.MakeFailedError(fmt.Errorf("no session %s", s.id))
}

func sessionPath(id string) dbus.ObjectPath { return dbus.ObjectPath(loginPath + "/session/_" + id) }

// change alters the fake's data and sends a signal as logind does.
func (f *fakeLogind) change(t *testing.T, signal string, alter func()) {
	t.Helper()
	f.mu.Lock()
	alter()
	for id := range f.sessions {
		if err := f.conn.Export(fakeSession{f, id}, sessionPath(id), properties); err != nil {
			t.Error(err)
		}
	}
	f.mu.Unlock()
	if err := f.conn.Emit(loginPath, signal); err != nil {
		t.Fatal(err)
	}
}

// runSource runs a source and returns a function that waits for a reading.
func runSource(t *testing.T, s Source) (next func(what string, is func(SourceReading) bool) SourceReading) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	published := make(chan SourceReading, 1000)
	done := make(chan struct{})
	go func() { s.Run(ctx, func(s SourceReading) { published <- s }); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return func(what string, is func(SourceReading) bool) SourceReading {
		t.Helper()
		var last SourceReading
		for late := time.After(30 * time.Second); ; {
			select {
			case last = <-published:
				if is(last) {
					return last
				}
			case <-late:
				t.Fatalf("%s was never seen; last: %+v", what, last)
			}
		}
	}
}

// TestLogindOverTheBus runs the source with a fake logind on a real bus. It begins before
// the fake starts and ends after it has stopped.
func TestLogindOverTheBus(t *testing.T) {
	address, stop := startBus(t)
	fake := newFakeLogind(t, address)
	next := runSource(t, &LogindSource{address: address, isTaskProcess: func(int) bool { return false }})

	s := next("an empty machine", func(s SourceReading) bool { return s.Health == Healthy })
	if s.Coverage != Machine || s.Text != "nobody is logged in" || s.Input != 0 {
		t.Errorf("nobody is logged in, and %+v", s)
	}
	fake.change(t, loginManager+".SessionNew", func() {
		fake.sessions["1"] = map[string]dbus.Variant{
			"seat": dbus.MakeVariant("seat0"), "Type": dbus.MakeVariant("wayland"), "Class": dbus.MakeVariant("user"),
			"TTY":    dbus.MakeVariant(""),
			"Active": dbus.MakeVariant(true), "Remote": dbus.MakeVariant(false), "LockedHint": dbus.MakeVariant(false),
			"IdleHint":               dbus.MakeVariant(true),
			"IdleSinceHintMonotonic": dbus.MakeVariant(uint64(1_000_000)),
		}
	})
	s = next("a login", func(s SourceReading) bool { return s.ConsoleInput != 0 })
	if s.Coverage != Console || s.IndirectInput == 0 || s.IndirectInput >= s.ConsoleInput ||
		s.Text != "ann at seat0 (wayland, idle)" {
		t.Errorf("ann has logged in: %+v", s)
	}
	fake.change(t, properties+".PropertiesChanged", func() {
		fake.inhibitors = []logindInhibitor{{"idle", "Firefox", "a video is playing", "block", 1000,
			uint32(os.Getpid())}}
	})
	next("a film", func(s SourceReading) bool { return s.OwnerUseReason == "Firefox: a video is playing" })

	fake.mu.Lock()
	delay := fake.delay
	fake.mu.Unlock()
	began := time.Now()
	fake.change(t, loginManager+".PrepareForSleep", func() { fake.sleeping, fake.delay = true, nil })
	next("sleep", func(s SourceReading) bool { return s.Sleeping })
	delay.Read(make([]byte, 1)) // until the source closes its end, which permits sleep
	if took := time.Since(began); took < sleepFreezeTime {
		t.Errorf("it lets the machine sleep after %v, before tasks stand still", took)
	}
	fake.change(t, loginManager+".PrepareForSleep", func() { fake.sleeping = false })
	next("the morning", func(s SourceReading) bool { return !s.Sleeping })
	fake.mu.Lock()
	if fake.delay == nil {
		t.Error("the next sleep is not delayed")
	}
	fake.mu.Unlock()

	stop()
	s = next("the bus's end", func(s SourceReading) bool { return s.Health == Broken })
	if s.Coverage != Console || s.ConsoleInput == 0 {
		t.Errorf("without a bus: %+v", s)
	}
}

// TestLogindIsNotThere checks that a missing bus, or a bus without logind, is Absent. A
// logind that does not answer must be Broken.
func TestLogindIsNotThere(t *testing.T) {
	none := func(int) bool { return false }
	runSource(t, &LogindSource{address: "unix:path=" + filepath.Join(t.TempDir(), "none"),
		isTaskProcess: none})("no bus",
		func(s SourceReading) bool { return s.Health == Absent && s.Text == "this machine has no system bus" })

	address, _ := startBus(t)
	runSource(t, &LogindSource{address: address, isTaskProcess: none})("no logind", func(s SourceReading) bool {
		return s.Health == Absent && s.Text == errNoLogind.Error()
	})

	fake := newFakeLogind(t, address)
	fake.blocked = make(chan struct{})
	defer close(fake.blocked)
	runSource(t, &LogindSource{address: address, isTaskProcess: none})("a stuck logind",
		func(s SourceReading) bool { return s.Health == Broken && strings.Contains(s.Text, "systemd-logind") })
}

// TestOthersCannotSpeakForLogind checks that the source ignores logind signals from any
// other sender.
func TestOthersCannotSpeakForLogind(t *testing.T) {
	address, _ := startBus(t)
	fake := newFakeLogind(t, address)
	published := make(chan SourceReading, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		(&LogindSource{address: address, isTaskProcess: func(int) bool {
			return false
		}}).Run(ctx, func(s SourceReading) { published <- s })
		close(done)
	}()
	defer func() { cancel(); <-done }()
	<-published
	impostor, err := dbus.Connect(address)
	if err != nil {
		t.Fatal(err)
	}
	defer impostor.Close()
	fake.mu.Lock()
	to := string(fake.lastCaller)
	fake.mu.Unlock()
	// directly to the source: then its match rules on the bus have no effect
	signal := &dbus.Message{Type: dbus.TypeSignal, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldDestination: dbus.MakeVariant(to), dbus.FieldPath: dbus.MakeVariant(dbus.ObjectPath(loginPath)),
		dbus.FieldInterface: dbus.MakeVariant(loginManager), dbus.FieldMember: dbus.MakeVariant("PrepareForSleep"),
		dbus.FieldSignature: dbus.MakeVariant(dbus.SignatureOf(true)),
	}, Body: []any{true}}
	if call := impostor.Send(signal, nil); call != nil && call.Err != nil {
		t.Fatal(call.Err)
	}
	select {
	case s := <-published:
		t.Errorf("it looked because an impostor said so: %+v", s)
	case <-time.After(200 * time.Millisecond):
	}
	fake.change(t, loginManager+".SessionNew", func() {})
	<-published
}

func TestMonotonicInstants(t *testing.T) {
	var m unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &m); err != nil {
		t.Fatal(err)
	}
	before := boottime.Now()
	at := fromMonotonic(uint64(m.Nano() / 1000))
	if at <= 0 || at > boottime.Now() || at < before-time.Minute {
		t.Errorf("a moment ago is %v, now %v", at, boottime.Now())
	}
	if fromMonotonic(0) != 0 {
		t.Error("never is some time")
	}
}
