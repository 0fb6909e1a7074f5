package guard

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/atomicfile"
	"github.com/roost-batch/roost/internal/script"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/desktop/idle"
)

// newQuietState returns the state of a machine without input for an hour. The first
// observations were sent at that instant.
func newQuietState(now roost.BootTime) *observedState {
	s := newObservedState([]idle.Source{newFakeSource()}, now)
	s.update(idle.SourceReading{Name: "keys", Health: idle.Healthy, Coverage: idle.Hardware, Input: now - time.Hour},
		now)
	s.nextObservations(now, nil, true)
	return s
}

// TestTypingIsNoFlood types for a minute. The first key must be urgent, and then one
// message a second suffices.
func TestTypingIsNoFlood(t *testing.T) {
	now := roost.BootTime(2 * time.Hour)
	s := newQuietState(now)
	urgent, reports := 0, 0
	for range 1200 {
		now += 50 * time.Millisecond
		s.update(idle.SourceReading{Name: "keys", Health: idle.Healthy, Coverage: idle.Hardware, Input: now}, now)
		if observations := s.nextObservations(now, nil, false); observations != nil {
			reports++
			if observations.GetUrgent() {
				urgent++
			}
		}
	}
	if urgent != 1 || reports < 59 || reports > 61 {
		t.Errorf("%d signs, %d of them urgent", reports, urgent)
	}
	now += 10 * time.Second
	s.update(idle.SourceReading{Name: "keys", Health: idle.Healthy, Coverage: idle.Hardware, Input: now}, now)
	if observations := s.nextObservations(now, nil, false); !observations.GetUrgent() {
		t.Errorf("after a rest of ten seconds a key is not urgent: %v", observations)
	}
}

// TestWhatIsUrgent checks that each kind of observation freezes tasks by itself, once.
func TestWhatIsUrgent(t *testing.T) {
	for name, reading := range map[string]idle.SourceReading{
		"a call":             {OwnerUseReason: "a video call"},
		"a game":             {ExclusiveProgram: true},
		"heat":               {Hot: true},
		"the battery":        {OnBattery: true},
		"sleep":              {Sleeping: true},
		"a computation":      {SystemLoad: idle.SystemLoad{ForeignCPU: 1}},
		"memory":             {SystemLoad: idle.SystemLoad{MemoryPressure: 9}},
		"a source that ails": {Health: idle.Broken},
	} {
		now := roost.BootTime(2 * time.Hour)
		s := newQuietState(now)
		reading.Name, reading.Coverage, reading.Input = "keys", idle.Hardware, now-time.Hour
		if reading.Health != idle.Broken {
			reading.Health = idle.Healthy
		}
		s.update(reading, now)
		if observations := s.nextObservations(now, nil, false); !observations.GetUrgent() {
			t.Errorf("%s: %v", name, observations)
		}
		if observations := s.nextObservations(now, nil, false); observations != nil {
			t.Errorf("%s: said again at once", name)
		}
		if observations := s.nextObservations(now+fullResendInterval, nil, false); observations == nil ||
			observations.GetUrgent() {
			t.Errorf("%s: two seconds later: %v", name, observations)
		}
	}
}

// TestOthersWorkHasTwoThresholds checks the hysteresis of other work. With one threshold
// it could start and stop tasks for ever.
func TestOthersWorkHasTwoThresholds(t *testing.T) {
	s := newQuietState(2 * time.Hour)
	for i, step := range []struct {
		cores float64
		busy  bool
	}{{0.4, false}, {0.5, true}, {0.4, true}, {0.26, true}, {0.24, false}, {0.4, false}} {
		now := 2*time.Hour + roost.BootTime(i)*time.Second
		s.update(idle.SourceReading{Name: "keys", Health: idle.Healthy, Coverage: idle.Hardware,
			SystemLoad: idle.SystemLoad{ForeignCPU: step.cores}}, now)
		if got := s.currentObservations().GetForeignBusySince() != 0; got != step.busy {
			t.Errorf("step %d, %.2f cores: busy %v", i, step.cores, got)
		}
	}
}

// TestWhoWakesTheMachineIsThere checks that a night asleep does not count as idle time.
func TestWhoWakesTheMachineIsThere(t *testing.T) {
	now := roost.BootTime(10 * time.Hour)
	s := newQuietState(2 * time.Hour)
	s.onWake(now)
	observations := s.nextObservations(now, nil, false)
	if !observations.GetUrgent() || !observations.GetAsleep() || observations.GetInput() != int64(now) ||
		observations.GetConsoleInput() != int64(now) {
		t.Errorf("woken: %v", observations)
	}
	s.tick(now+wakeGrace-1, time.Time{})
	if !s.currentObservations().GetAsleep() {
		t.Error("looked at too soon")
	}
	s.tick(now+wakeGrace, time.Time{})
	if s.currentObservations().GetAsleep() {
		t.Error("asleep for ever")
	}
}

// TestPauses checks pauses while clocks are set and the machine is rebooted. A time is a
// time of day, or a date with one.
func TestPauses(t *testing.T) {
	script.Run(t, "testdata/pauses.txt", func(t *testing.T) func(script.ScriptCommand) string {
		dir := t.TempDir()
		wall, now, boot := at(t, "12:00"), roost.BootTime(time.Hour), 1
		return func(s script.ScriptCommand) string {
			switch s.Command {
			case "pause":
				until := int64(0)
				if s.Args[0] != "good" {
					until = at(t, s.Args[0]).UnixNano()
				}
				if err := savePause(dir, newPause(until, "ann", "", wall, fmt.Sprint(boot), now)); err != nil {
					t.Fatal(err)
				}
			case "wait":
				d, err := time.ParseDuration(s.Args[0])
				if err != nil {
					t.Fatal(err)
				}
				wall, now = wall.Add(d), now+d
			case "clock":
				wall = at(t, strings.Join(s.Args, "T"))
			case "boot":
				boot, now = boot+1, roost.BootTime(20*time.Second)
			case "spoil":
				if err := replaceFile(pauseFile(dir), []byte(strings.Join(s.Args, " ")), atomicfile.Write); err != nil {
					t.Fatal(err)
				}
			case "resume":
				if err := removePause(dir); err != nil {
					t.Fatal(err)
				}
			}
			p, err := loadPause(dir, wall, fmt.Sprint(boot), now)
			text := wall.UTC().Format("2006-01-02 15:04") + ": not paused"
			if p != nil {
				text = wall.UTC().Format("2006-01-02 15:04") + ": paused by " + p.By + " for good"
				if d, ends := p.remaining(wall, now); ends {
					text = strings.Replace(text, "for good", "for "+d.String(), 1)
				}
			}
			if err != nil {
				text += "\nthe file is spoilt"
			}
			return text
		}
	})
}

func at(t *testing.T, text string) time.Time {
	if !strings.Contains(text, "T") {
		text = "2026-11-20T" + text
	}
	w, err := time.Parse("2006-01-02T15:04", text)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestFrozenByGuardStaysFrozen checks that tasks frozen by the guard are shown as
// suspended, whatever the startd reported before.
func TestFrozenByGuardStaysFrozen(t *testing.T) {
	r := &startdRecord{name: "a", report: &wire.GuardReport{Startd: "a",
		Tenants: []*wire.Tenant{{Task: "1[0].a", State: "running"}, {Task: "2[0].a", State: "leaving"}}}}
	states := func() string {
		return r.currentReport().GetTenants()[0].GetState() + " " + r.currentReport().GetTenants()[1].GetState()
	}
	if got := states(); got != "running leaving" {
		t.Errorf("before: got %s", got)
	}
	r.frozenGroups = []string{"/sys/fs/cgroup/x/1"}
	if got := states(); got != "suspended leaving" {
		t.Errorf("frozen: got %s", got)
	}
	if r.frozenGroups = nil; states() != "running leaving" {
		t.Errorf("it has forgotten what the startd said: %s", states())
	}
}
