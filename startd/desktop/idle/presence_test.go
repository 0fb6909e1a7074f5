package idle

import (
	"errors"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boottime"
)

// TestAgentsAreBelievedForAWhile checks that a report is valid for half a minute. Its
// times of input must count longer.
func TestAgentsAreBelievedForAWhile(t *testing.T) {
	a := NewSessionAgents()
	now := boottime.Now()
	if s := a.combinedReading(now); s.Health != Absent || s.Input != 0 {
		t.Errorf("without agents: %+v", s)
	}
	a.Report(1000, "ann", false, SessionPresence{Input: now / 2, Origin: "GNOME"})
	if s := a.combinedReading(now); s.Health != Healthy || s.Coverage != Terminal || s.Input != now/2 ||
		s.ConsoleInput != 0 || s.Text != "ann (GNOME)" {
		t.Errorf("ann at a remote desktop: %+v", s)
	}
	a.Report(1001, "bob", true, SessionPresence{Input: now + time.Hour, Origin: "the screen saver",
		InUseReason: "a film\n", Game: true})
	s := a.combinedReading(boottime.Now())
	if s.Coverage != Console || s.ConsoleInput < now || s.ConsoleInput > boottime.Now() ||
		s.OwnerUseReason != "bob: a film?" ||
		!s.ExclusiveProgram || s.Text != "ann (GNOME), bob (the screen saver)" {
		t.Errorf("bob at the machine, from the future: %+v", s)
	}
	a.Report(1001, "bob", true, SessionPresence{})
	if s := a.combinedReading(boottime.Now()); s.Coverage != Terminal || s.OwnerUseReason != "" || s.ExclusiveProgram ||
		s.ConsoleInput < now {
		t.Errorf("bob's desktop knows nothing any more: %+v", s)
	}
	if s := a.combinedReading(boottime.Now() + presenceTimeout + 1); s.Health != Absent || s.OwnerUseReason != "" ||
		s.ConsoleInput < now {
		t.Errorf("after half a minute without a word: %+v", s)
	}
	for uid := range uint32(1000) {
		a.Report(uid, "eve", false, SessionPresence{})
	}
	if len(a.presences) > maxAgents {
		t.Errorf("%d agents are remembered", len(a.presences))
	}
}

func TestAgentsReportedAtOnce(t *testing.T) {
	a := NewSessionAgents()
	next := runSource(t, a)
	next("nobody", func(s SourceReading) bool { return s.Health == Absent })
	a.Report(1000, "ann", true, SessionPresence{Input: boottime.Now(), Origin: "GNOME"})
	next("ann", func(s SourceReading) bool { return s.ConsoleInput != 0 })
}

// TestWhatASaverCounts feeds the detector with one value per second and checks the
// resulting unit.
func TestWhatASaverCounts(t *testing.T) {
	grow := func(first, step uint32, n int) (all []uint32) {
		for i := range n {
			all = append(all, first+uint32(i)*step)
		}
		return all
	}
	for name, c := range map[string]struct {
		counts []uint32
		want   time.Duration
	}{
		"thousandths":               {grow(500, 1000, 4), time.Millisecond},
		"seconds":                   {grow(3, 1, 15), time.Second},
		"seconds, after some input": {append([]uint32{50, 51, 0, 1, 0}, grow(0, 1, 15)...), time.Second},
		"seconds, too few to know":  {grow(3, 1, 8), time.Millisecond},
		"thousandths, of a steady hand": {[]uint32{2, 3, 5, 1, 4, 6, 2, 3, 9, 1, 2, 3, 4, 6, 2, 1, 7},
			time.Millisecond},
		"nothing": {grow(0, 0, 30), time.Millisecond},
	} {
		var g idleUnitDetector
		var got time.Duration
		for i, n := range c.counts {
			got = g.detect(n, time.Hour+roost.BootTime(i)*time.Second)
		}
		if got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// fakeDesktop implements the services that may run in a session.
type fakeDesktop struct {
	idle      uint64
	inhibited bool
	games     int32
}

func (f *fakeDesktop) GetIdletime() (uint64, *dbus.Error)        { return f.idle, nil }
func (f *fakeDesktop) GetSessionIdleTime() (uint32, *dbus.Error) { return uint32(f.idle), nil }
func (f *fakeDesktop) IsInhibited(flags uint32) (bool, *dbus.Error) {
	return f.inhibited && flags == inhibitIdleFlag, nil
}
func (f *fakeDesktop) Get(iface, name string) (dbus.Variant, *dbus.Error) {
	if iface != gameMode || name != "ClientCount" {
		return dbus.Variant{}, dbus.MakeFailedError(errors.New(name))
	}
	return dbus.MakeVariant(f.games), nil
}

// TestDesktopsAreAsked checks several desktops, one after the other, over a real bus.
func TestDesktopsAreAsked(t *testing.T) {
	address, _ := startBus(t)
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", address)
	d, err := OpenDesktop(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	look := func() SessionPresence {
		t.Helper()
		p, err := d.ReadPresence(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if p := look(); p != (SessionPresence{}) {
		t.Errorf("of an empty session: %+v", p)
	}
	conn, err := dbus.Connect(address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fake := &fakeDesktop{idle: 5000, inhibited: true, games: 1}
	run := func(name, path, iface string) {
		t.Helper()
		err := conn.Export(fake, dbus.ObjectPath(path), iface)
		if err == nil {
			_, err = conn.RequestName(name, dbus.NameFlagDoNotQueue)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	about := func(p SessionPresence, by string) {
		t.Helper()
		if idle := boottime.Now() - p.Input; p.Origin != by || idle < 5*time.Second || idle > time.Minute {
			t.Errorf("idle for 5 s: %+v, %v ago", p, idle)
		}
	}
	run(screenSaver, screenSaverPath, screenSaver)
	about(look(), "the screen saver")
	run(mutter, mutterPath, mutter)
	about(look(), "GNOME")
	run(gnome, gnomePath, gnome)
	run(gameMode, gameModePath, properties)
	if p := look(); p.InUseReason == "" || !p.Game {
		t.Errorf("with a film and a game: %+v", p)
	}
	fake.inhibited, fake.games = false, 0
	if p := look(); p.InUseReason != "" || p.Game {
		t.Errorf("when both are over: %+v", p)
	}
}

func TestNoSessionBus(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path="+t.TempDir()+"/none")
	if d, err := OpenDesktop(t.Context()); err == nil {
		d.Close()
		t.Error("there is a bus")
	}
}
