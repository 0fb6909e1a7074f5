package idle

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/script"
)

// TestRule checks the rule with different machines. Each line of a step is a source with
// its coverage, its health and its reading.
func TestRule(t *testing.T) {
	script.Run(t, "testdata/rule.txt", func(t *testing.T) func(script.ScriptCommand) string {
		return func(s script.ScriptCommand) string {
			var readings []SourceReading
			for _, line := range s.Input {
				readings = append(readings, parseReading(t, line))
			}
			p := CombineReadings(readings, s.Command == "desktop")
			if p.OwnerUseReason != "" {
				return "busy: " + p.OwnerUseReason
			}
			text := fmt.Sprintf("input at %v, at the console at %v", p.Input, p.ConsoleInput)
			for _, flag := range []struct {
				on   bool
				name string
			}{{p.OnBattery, "on battery"}, {p.Hot, "hot"}, {p.ExclusiveProgram, "a game"},
				{p.Sleeping, "going to sleep"}} {
				if flag.on {
					text += ", " + flag.name
				}
			}
			return text
		}
	})
}

// parseReading parses "NAME REACH HEALTH [input=10s] [console=10s] [believed=10s]
// [busy=WORD] [FLAG…]"; underscores are blanks.
func parseReading(t *testing.T, line string) SourceReading {
	words := strings.Fields(line)
	s := SourceReading{Name: strings.ReplaceAll(words[0], "_", " "), Text: "cannot be read"}
	s.Coverage = map[string]SourceCoverage{"machine": Machine, "terminal": Terminal, "console": Console,
		"hardware": Hardware}[words[1]]
	s.Health = map[string]SourceHealth{"absent": Absent, "well": Healthy, "broken": Broken}[words[2]]
	for _, w := range words[3:] {
		key, value, _ := strings.Cut(w, "=")
		var err error
		switch key {
		case "input":
			s.Input, err = time.ParseDuration(value)
		case "console":
			s.ConsoleInput, err = time.ParseDuration(value)
		case "believed":
			s.IndirectInput, err = time.ParseDuration(value)
		case "busy":
			s.OwnerUseReason = strings.ReplaceAll(value, "_", " ")
		case "cpu":
			s.ForeignCPU, err = strconv.ParseFloat(value, 64)
		case "battery":
			s.OnBattery = true
		case "hot":
			s.Hot = true
		case "game":
			s.ExclusiveProgram = true
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

// TestNothingMakesIdle checks random sources. A further healthy source must never remove
// a reason to be busy, a broken one must never make a machine idle, and the times of
// input must never go back.
func TestNothingMakesIdle(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		readings := make([]SourceReading, 1+r.IntN(5))
		for i := range readings {
			readings[i] = SourceReading{Name: fmt.Sprint(i), Health: SourceHealth(r.IntN(3)),
				Coverage: SourceCoverage(r.IntN(4)), Input: roost.BootTime(r.IntN(5)),
				ConsoleInput: roost.BootTime(r.IntN(5))}
			if r.IntN(6) == 0 {
				readings[i].OwnerUseReason = "a call"
			}
		}
		console := r.IntN(2) == 0
		before := CombineReadings(readings, console)
		if p := CombineReadings(readings, true); before.OwnerUseReason != "" && p.OwnerUseReason == "" {
			t.Fatalf("%+v: a console makes it idle", readings)
		}
		sick := append([]SourceReading(nil), readings...)
		i := r.IntN(len(sick))
		spoke := sick[i].Health == Healthy && sick[i].OwnerUseReason != ""
		sick[i].Health = Broken
		after := CombineReadings(sick, console)
		if before.OwnerUseReason != "" && after.OwnerUseReason == "" && !spoke {
			t.Fatalf("%+v: idle once %d is broken", readings, i)
		}
		if after.Input != before.Input || after.ConsoleInput != before.ConsoleInput ||
			before.Input < before.ConsoleInput {
			t.Fatalf("%+v: input was %v, %v and is %v, %v", readings, before.Input, before.ConsoleInput, after.Input,
				after.ConsoleInput)
		}
		well := false
		for _, s := range sick {
			well = well || s.Health == Healthy && s.Coverage > Machine
		}
		if !well && after.OwnerUseReason == "" {
			t.Fatalf("%+v: idle, and nothing that sees people is well", sick)
		}
	}
}
