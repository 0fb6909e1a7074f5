package idle

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/script"
)

// TestPowerAndHeat checks the meaning of sysfs trees. The lines "path text" are files
// below the directory of the kind, and the output is the reading.
func TestPowerAndHeat(t *testing.T) {
	script.Run(t, "testdata/machine.txt", func(t *testing.T) func(script.ScriptCommand) string {
		dir := t.TempDir()
		power, heat := &PowerSource{dir: filepath.Join(dir, "power")}, NewThermal()
		heat.dir = filepath.Join(dir, "thermal")
		return func(s script.ScriptCommand) string {
			for _, line := range s.Input {
				name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
				writeFile(t, filepath.Join(dir, s.Command, name), text)
			}
			switch s.Command {
			case "power":
				return describeReading(power.readPower())
			case "thermal":
				return describeReading(heat.readThermal())
			}
			return "what is that?"
		}
	})
}

func writeFile(t *testing.T, file, text string) {
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

// describeReading formats a reading without its times.
func describeReading(s SourceReading) string {
	text := s.Health.String() + ": " + s.Text
	for _, f := range []struct {
		name string
		is   bool
	}{{"on battery", s.OnBattery}, {"hot", s.Hot}, {"game", s.ExclusiveProgram}, {"asleep", s.Sleeping},
		{"busy: " + s.OwnerUseReason, s.OwnerUseReason != ""}} {
		if f.is {
			text += "\n" + f.name
		}
	}
	return text
}

// TestProgramsAreFound checks the search for programs. One of the processes is a task
// that uses such a name.
func TestProgramsAreFound(t *testing.T) {
	dir := t.TempDir()
	names, asked := []string{}, []int{}
	p := NewPrograms(func() []string {
		return names
	}, func(pid int) bool { asked = append(asked, pid); return pid == 30 })
	p.proc = dir
	look := func(want string) {
		t.Helper()
		if got := describeReading(p.readPrograms()); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	look("absent: the owner's file names none (exclusive)")
	names = []string{"steam", "a-very-long-program-name"}
	if s := p.readPrograms(); s.Health != Broken || !strings.Contains(s.Text, "hidepid") {
		t.Errorf("with hidden processes: %+v", s)
	}
	writeFile(t, filepath.Join(dir, "1", "comm"), "init")
	writeFile(t, filepath.Join(dir, "30", "comm"), "steam")
	writeFile(t, filepath.Join(dir, "31", "comm"), "steamy")
	writeFile(t, filepath.Join(dir, "self", "comm"), "steam")
	look("well: none of steam, a-very-long-program-name runs")
	writeFile(t, filepath.Join(dir, "40", "comm"), "a-very-long-pro")
	writeFile(t, filepath.Join(dir, "41", "comm"), "steam")
	look("well: a-very-long-program-name, steam runs\ngame")
	look("well: a-very-long-program-name, steam runs\ngame")
	if slices.Sort(asked); !slices.Equal(asked, []int{30, 40, 41}) {
		t.Errorf("asked of %v, want each once", asked)
	}
	writeFile(t, filepath.Join(dir, "30", "comm"), "python") // the task has executed another program,
	look("well: a-very-long-program-name, steam runs\ngame")
	for _, pid := range []string{"40", "41"} {
		if err := os.RemoveAll(filepath.Join(dir, pid)); err != nil {
			t.Fatal(err)
		}
	}
	look("well: none of steam, a-very-long-program-name runs")
}

// TestRealProgramIsFound searches for this test's own name, as the kernel stores it.
func TestRealProgramIsFound(t *testing.T) {
	comm := readWord("/proc/self/comm")
	p := NewPrograms(func() []string { return []string{comm} }, func(int) bool { return false })
	if s := p.readPrograms(); s.Health != Healthy || !s.ExclusiveProgram {
		t.Errorf("looked for %q: %+v", comm, s)
	}
}

func BenchmarkPrograms(b *testing.B) {
	p := NewPrograms(func() []string { return []string{"steam"} }, func(int) bool { return false })
	for b.Loop() {
		p.readPrograms()
	}
	entries, _ := filepath.Glob("/proc/[0-9]*")
	b.ReportMetric(float64(b.Elapsed()/time.Duration(b.N))/float64(len(entries)), "ns/process")
}
