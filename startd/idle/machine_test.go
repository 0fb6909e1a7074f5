package idle

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/story"
)

// TestPowerAndHeat tells what trees of sysfs mean: lines of "path text" below the directory of the kind, and what is seen after them.
func TestPowerAndHeat(t *testing.T) {
	story.Run(t, "testdata/machine.txt", func(t *testing.T) func(story.Step) string {
		dir := t.TempDir()
		power, heat := &Power{dir: filepath.Join(dir, "power")}, NewThermal()
		heat.dir = filepath.Join(dir, "thermal")
		return func(s story.Step) string {
			for _, line := range s.Input {
				name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
				put(t, filepath.Join(dir, s.Command, name), text)
			}
			switch s.Command {
			case "power":
				return describe(power.look())
			case "thermal":
				return describe(heat.look())
			}
			return "what is that?"
		}
	})
}

func put(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if text == "-" {
		os.Remove(file)
		return
	}
	if err := os.WriteFile(file, []byte(text+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// describe says what a source sees beside the times.
func describe(s Sight) string {
	text := s.Health.String() + ": " + s.Text
	for _, f := range []struct {
		name string
		is   bool
	}{{"on battery", s.OnBattery}, {"hot", s.Hot}, {"game", s.Game}, {"asleep", s.Sleeping}, {"busy: " + s.Busy, s.Busy != ""}} {
		if f.is {
			text += "\n" + f.name
		}
	}
	return text
}

// TestProgramsAreFound among processes of which one is a task that pretends.
func TestProgramsAreFound(t *testing.T) {
	dir := t.TempDir()
	names, asked := []string{}, []int{}
	p := NewPrograms(func() []string { return names }, func(pid int) bool { asked = append(asked, pid); return pid == 30 })
	p.proc = dir
	look := func(want string) {
		t.Helper()
		if got := describe(p.look()); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	look("absent: the owner's file names none (exclusive)")
	names = []string{"steam", "a-very-long-program-name"}
	if s := p.look(); s.Health != Broken || !strings.Contains(s.Text, "hidepid") {
		t.Errorf("with hidden processes: %+v", s)
	}
	put(t, filepath.Join(dir, "1", "comm"), "init")
	put(t, filepath.Join(dir, "30", "comm"), "steam")
	put(t, filepath.Join(dir, "31", "comm"), "steamy")
	put(t, filepath.Join(dir, "self", "comm"), "steam")
	look("well: none of steam, a-very-long-program-name runs")
	put(t, filepath.Join(dir, "40", "comm"), "a-very-long-pro")
	put(t, filepath.Join(dir, "41", "comm"), "steam")
	look("well: a-very-long-program-name, steam runs\ngame")
	look("well: a-very-long-program-name, steam runs\ngame")
	if slices.Sort(asked); !slices.Equal(asked, []int{30, 40, 41}) {
		t.Errorf("asked of %v, want each once", asked)
	}
	put(t, filepath.Join(dir, "30", "comm"), "python") // the task has run something else,
	look("well: a-very-long-program-name, steam runs\ngame")
	for _, pid := range []string{"40", "41"} {
		if err := os.RemoveAll(filepath.Join(dir, pid)); err != nil {
			t.Fatal(err)
		}
	}
	look("well: none of steam, a-very-long-program-name runs")
}

// TestRealProgramIsFound: this test's own name, as the kernel has it.
func TestRealProgramIsFound(t *testing.T) {
	comm := word("/proc/self/comm")
	p := NewPrograms(func() []string { return []string{comm} }, func(int) bool { return false })
	if s := p.look(); s.Health != Well || !s.Game {
		t.Errorf("looked for %q: %+v", comm, s)
	}
}

func BenchmarkPrograms(b *testing.B) {
	p := NewPrograms(func() []string { return []string{"steam"} }, func(int) bool { return false })
	for b.Loop() {
		p.look()
	}
	entries, _ := filepath.Glob("/proc/[0-9]*")
	b.ReportMetric(float64(b.Elapsed()/time.Duration(b.N))/float64(len(entries)), "ns/process")
}
