package idle

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/story"
)

// TestRule tells the rule by machines: each line of a step is a source with its reach and health, and what it sees.
func TestRule(t *testing.T) {
	story.Run(t, "testdata/rule.txt", func(t *testing.T) func(story.Step) string {
		return func(s story.Step) string {
			var sights []Sight
			for _, line := range s.Input {
				sights = append(sights, parseSight(t, line))
			}
			p := Combine(sights, s.Command == "desktop")
			if p.Busy != "" {
				return "busy: " + p.Busy
			}
			text := fmt.Sprintf("input at %v, at the console at %v", p.Input, p.ConsoleInput)
			for _, flag := range []struct {
				on   bool
				name string
			}{{p.OnBattery, "on battery"}, {p.Hot, "hot"}, {p.Game, "a game"}, {p.Sleeping, "going to sleep"}} {
				if flag.on {
					text += ", " + flag.name
				}
			}
			return text
		}
	})
}

// parseSight reads "NAME REACH HEALTH [input=10s] [console=10s] [believed=10s] [busy=WORD] [FLAG…]"; underscores are blanks.
func parseSight(t *testing.T, line string) Sight {
	words := strings.Fields(line)
	s := Sight{Name: strings.ReplaceAll(words[0], "_", " "), Text: "cannot be read"}
	s.Reach = map[string]Reach{"machine": Machine, "terminal": Terminal, "console": Console, "hardware": Hardware}[words[1]]
	s.Health = map[string]Health{"absent": Absent, "well": Well, "broken": Broken}[words[2]]
	for _, w := range words[3:] {
		key, value, _ := strings.Cut(w, "=")
		var err error
		switch key {
		case "input":
			s.Input, err = time.ParseDuration(value)
		case "console":
			s.ConsoleInput, err = time.ParseDuration(value)
		case "believed":
			s.Believed, err = time.ParseDuration(value)
		case "busy":
			s.Busy = strings.ReplaceAll(value, "_", " ")
		case "cpu":
			s.ForeignCPU, err = strconv.ParseFloat(value, 64)
		case "battery":
			s.OnBattery = true
		case "hot":
			s.Hot = true
		case "game":
			s.Game = true
		case "sleep":
			s.Sleeping = true
		default:
			t.Fatalf("%q: %q means nothing", line, w)
		}
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
	}
	return s
}

// TestNothingMakesIdle holds of any sources: one more that is well never takes away a reason to be busy that a source gave, one that breaks never makes a
// machine idle, and the times of input never go back.
func TestNothingMakesIdle(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		sights := make([]Sight, 1+r.IntN(5))
		for i := range sights {
			sights[i] = Sight{Name: fmt.Sprint(i), Health: Health(r.IntN(3)), Reach: Reach(r.IntN(4)), Input: Instant(r.IntN(5)), ConsoleInput: Instant(r.IntN(5))}
			if r.IntN(6) == 0 {
				sights[i].Busy = "a call"
			}
		}
		console := r.IntN(2) == 0
		before := Combine(sights, console)
		if p := Combine(sights, true); before.Busy != "" && p.Busy == "" {
			t.Fatalf("%+v: a console makes it idle", sights)
		}
		sick := append([]Sight(nil), sights...)
		i := r.IntN(len(sick))
		spoke := sick[i].Health == Well && sick[i].Busy != ""
		sick[i].Health = Broken
		after := Combine(sick, console)
		if before.Busy != "" && after.Busy == "" && !spoke {
			t.Fatalf("%+v: idle once %d is broken", sights, i)
		}
		if after.Input != before.Input || after.ConsoleInput != before.ConsoleInput || before.Input < before.ConsoleInput {
			t.Fatalf("%+v: input was %v, %v and is %v, %v", sights, before.Input, before.ConsoleInput, after.Input, after.ConsoleInput)
		}
		well := false
		for _, s := range sick {
			well = well || s.Health == Well && s.Reach > Machine
		}
		if !well && after.Busy == "" {
			t.Fatalf("%+v: idle, and nothing that sees people is well", sick)
		}
	}
}
