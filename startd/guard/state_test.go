package guard

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/story"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/idle"
)

// quietState is that of a machine that nobody has touched for an hour and whose first signs were said at that instant.
func quietState(now idle.Instant) *state {
	s := newState([]idle.Source{newFakeSource()}, now)
	s.saw(idle.Sight{Name: "keys", Health: idle.Well, Reach: idle.Hardware, Input: now - time.Hour}, now)
	s.say(now, nil, true)
	return s
}

// TestTypingIsNoFlood: of somebody who types for a minute, the first key is urgent, and from then on one picture a second is enough.
func TestTypingIsNoFlood(t *testing.T) {
	now := idle.Instant(2 * time.Hour)
	s := quietState(now)
	urgent, said := 0, 0
	for range 1200 {
		now += 50 * time.Millisecond
		s.saw(idle.Sight{Name: "keys", Health: idle.Well, Reach: idle.Hardware, Input: now}, now)
		if signs := s.say(now, nil, false); signs != nil {
			said++
			if signs.GetUrgent() {
				urgent++
			}
		}
	}
	if urgent != 1 || said < 59 || said > 61 {
		t.Errorf("%d signs, %d of them urgent", said, urgent)
	}
	now += 10 * time.Second
	s.saw(idle.Sight{Name: "keys", Health: idle.Well, Reach: idle.Hardware, Input: now}, now)
	if signs := s.say(now, nil, false); !signs.GetUrgent() {
		t.Errorf("after a rest of ten seconds a key is not urgent: %v", signs)
	}
}

// TestWhatIsUrgent: each sign of its own stops tasks, once.
func TestWhatIsUrgent(t *testing.T) {
	for name, sight := range map[string]idle.Sight{
		"a call":             {Busy: "a video call"},
		"a game":             {Game: true},
		"heat":               {Hot: true},
		"the battery":        {OnBattery: true},
		"sleep":              {Sleeping: true},
		"a computation":      {Load: idle.Load{ForeignCPU: 1}},
		"memory":             {Load: idle.Load{MemoryPressure: 9}},
		"a source that ails": {Health: idle.Broken},
	} {
		now := idle.Instant(2 * time.Hour)
		s := quietState(now)
		sight.Name, sight.Reach, sight.Input = "keys", idle.Hardware, now-time.Hour
		if sight.Health != idle.Broken {
			sight.Health = idle.Well
		}
		s.saw(sight, now)
		if signs := s.say(now, nil, false); !signs.GetUrgent() {
			t.Errorf("%s: %v", name, signs)
		}
		if signs := s.say(now, nil, false); signs != nil {
			t.Errorf("%s: said again at once", name)
		}
		if signs := s.say(now+tellAgain, nil, false); signs == nil || signs.GetUrgent() {
			t.Errorf("%s: two seconds later: %v", name, signs)
		}
	}
}

// TestOthersWorkHasTwoThresholds: at the very threshold it would start and stop tasks for ever.
func TestOthersWorkHasTwoThresholds(t *testing.T) {
	s := quietState(2 * time.Hour)
	for i, step := range []struct {
		cores float64
		busy  bool
	}{{0.4, false}, {0.5, true}, {0.4, true}, {0.26, true}, {0.24, false}, {0.4, false}} {
		now := 2*time.Hour + idle.Instant(i)*time.Second
		s.saw(idle.Sight{Name: "keys", Health: idle.Well, Reach: idle.Hardware, Load: idle.Load{ForeignCPU: step.cores}}, now)
		if got := s.signs().GetForeignBusySince() != 0; got != step.busy {
			t.Errorf("step %d, %.2f cores: busy %v", i, step.cores, got)
		}
	}
}

// TestWhoWakesTheMachineIsThere: a night's sleep is no idle time.
func TestWhoWakesTheMachineIsThere(t *testing.T) {
	now := idle.Instant(10 * time.Hour)
	s := quietState(2 * time.Hour)
	s.wokeUp(now)
	signs := s.say(now, nil, false)
	if !signs.GetUrgent() || !signs.GetAsleep() || signs.GetInput() != int64(now) || signs.GetConsoleInput() != int64(now) {
		t.Errorf("woken: %v", signs)
	}
	s.tick(now+awakeAfter-1, time.Time{})
	if !s.signs().GetAsleep() {
		t.Error("looked at too soon")
	}
	s.tick(now+awakeAfter, time.Time{})
	if s.signs().GetAsleep() {
		t.Error("asleep for ever")
	}
}

// TestPauses tells what becomes of pauses while clocks are set and the machine is started anew. A day's clock is a time of day, or a date and one.
func TestPauses(t *testing.T) {
	story.Run(t, "testdata/pauses.txt", func(t *testing.T) func(story.Step) string {
		dir := t.TempDir()
		wall, now, boot := at(t, "12:00"), idle.Instant(time.Hour), 1
		return func(s story.Step) string {
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
				boot, now = boot+1, idle.Instant(20*time.Second)
			case "spoil":
				if err := replace(pauseFile(dir), []byte(strings.Join(s.Args, " ")), false); err != nil {
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
				if d, ends := p.left(wall, now); ends {
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

// What the guard froze is shown as what it is, whatever the startd said last.
func TestWhatTheGuardFrozeStandsStill(t *testing.T) {
	r := &record{name: "a", report: &wire.GuardReport{Startd: "a", Tenants: []*wire.Tenant{{Task: "1[0].a", State: "running"}, {Task: "2[0].a", State: "leaving"}}}}
	states := func() string { return r.seen().GetTenants()[0].GetState() + " " + r.seen().GetTenants()[1].GetState() }
	if got := states(); got != "running leaving" {
		t.Errorf("before: got %s", got)
	}
	r.frozen = []string{"/sys/fs/cgroup/x/1"}
	if got := states(); got != "suspended leaving" {
		t.Errorf("frozen: got %s", got)
	}
	if r.frozen = nil; states() != "running leaving" {
		t.Errorf("it has forgotten what the startd said: %s", states())
	}
}
