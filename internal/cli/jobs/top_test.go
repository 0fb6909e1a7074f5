package jobs

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/cli/clitest"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/wire"
)

// busyPool has tasks that use what they asked for in several ways.
func busyPool() *clitest.FakeSchedd {
	running := func(id, name, owner, node string, cpu int64, memory int64) *wire.JobStatus {
		return &wire.JobStatus{Id: id, Name: name, Owner: owner, State: "running", Attempt: 1, Node: node, Tasks: 1,
			Started: clitest.TimeBefore(time.Hour),
			Counts:  clitest.TaskCounts("running", 1), Request: &wire.Resources{MilliCpu: cpu, Memory: memory}}
	}
	const gib = 1 << 30
	idle, busy, full, fresh, frozen := running("7.pool", "sleepy", "ann", "n1", 4000, 8*gib),
		running("12[3].pool", "sweep", "ann", "n10", 2000, 4*gib),
		running("12[20].pool", "sweep", "bob", "n2", 1000, gib), running("13.pool", "evil\x1b[2Jname", "ann", "n1",
			1000, gib), running("14.pool", "stopped", "ann", "n1", 500, gib)
	idle.Usage = &wire.TaskUsage{Time: clitest.TimeBefore(time.Second), Wall: 3600e9, UserCpu: 36e9, Memory: 600 << 20,
		PeakMemory: 612 << 20, Processes: 3, Disk: 5 << 30}
	idle.Request.Disk = 20 * gib
	busy.Usage = &wire.TaskUsage{Time: clitest.TimeBefore(time.Second), Wall: 3600e9, UserCpu: 6000e9,
		SystemCpu: 1000e9,
		Memory:    3600 << 20, PeakMemory: 3700 << 20, Processes: 17,
		ReadBytes: 36e9, WriteBytes: 3600e6, Gpu: 1.4, GpuMemory: 30 * gib}
	busy.Request.Gpus, busy.Request.GpuMemory = 2, 16*gib
	full.Usage = &wire.TaskUsage{Time: clitest.TimeBefore(time.Second), Wall: 10e9, UserCpu: 9e9, Memory: gib - 1,
		PeakMemory: gib, Processes: 1}
	frozen.Usage = &wire.TaskUsage{Time: clitest.TimeBefore(time.Second), Wall: 10e9, Processes: 1, Frozen: true}
	waiting := &wire.JobStatus{Id: "15.pool", Name: "waits", Owner: "ann", State: "idle", Tasks: 1,
		Counts: clitest.TaskCounts("idle", 1)}
	return &clitest.FakeSchedd{Tasks: []*wire.JobStatus{idle, busy, full, fresh, frozen, waiting}}
}

// TestTop holds the picture of top: its columns, its order, what is coloured, and what
// goes in a narrow window.
func TestTop(t *testing.T) {
	var b strings.Builder
	for _, tt := range []struct {
		line   string
		screen frame.Screen
		env    string
	}{
		{"roost top --all", frame.Screen{}, ""},
		{"roost top", frame.Screen{}, ""},
		{"roost top --all --sort memory", frame.Screen{Terminal: true, Width: 100, Colour: true}, "NO_COLOR=1"},
		{"roost top --all --sort id --limit 2", frame.Screen{Terminal: true, Width: 72, Colour: true}, ""},
		{"roost top --once --sort io --all", frame.Screen{Terminal: true, Width: 44}, ""},
		{"roost top --json 7", frame.Screen{}, ""},
		{"roost top --sort size", frame.Screen{}, ""},
		{"roost top 99", frame.Screen{}, ""},
	} {
		dir := busyPool().Serve(t)
		a, stdout, stderr := newJobsApp(t, dir)
		a.OutScreen, a.Env = tt.screen, append(a.Env, tt.env)
		a.Interrupts <- syscall.SIGINT // one look is enough
		code := a.Run(t.Context(), strings.Fields(tt.line))
		fmt.Fprintf(&b, "$ %s  (%d columns)\n%s%s[exit status %d]\n\n", tt.line, tt.screen.Width,
			strings.ReplaceAll(stdout.String(), "\x1b", "^["), stderr, code)
		for line := range strings.SplitSeq(stdout.String(), "\n") {
			if w := tt.screen.Width; w > 0 && !tt.screen.Colour && frame.TextWidth(line) > w {
				t.Errorf("%s: a line of %d characters: %s", tt.line, frame.TextWidth(line), line)
			}
		}
	}
	clitest.CompareGolden(t, "top", b.String())
}

// TestRates holds what follows from two measurements, and when there is only one.
func TestRates(t *testing.T) {
	at := func(attempt uint32, wall, cpu, read int64) *wire.JobStatus {
		return &wire.JobStatus{Attempt: attempt,
			Usage: &wire.TaskUsage{Wall: wall * 1e9, UserCpu: cpu * 1e9, ReadBytes: read}}
	}
	for _, tt := range []struct {
		name        string
		now, before *wire.JobStatus
		cores, read float64
	}{
		{"first", at(1, 100, 50, 1000), nil, 0.5, 10},
		{"second", at(1, 102, 54, 5000), at(1, 100, 50, 1000), 2, 2000},
		{"another attempt", at(2, 10, 5, 100), at(1, 100, 50, 1000), 0.5, 10},
		{"the same measurement", at(1, 100, 50, 1000), at(1, 100, 50, 1000), 0.5, 10},
		{"a counter went back", at(1, 110, 40, 0), at(1, 100, 50, 1000), 0, 0},
		{"nothing yet", &wire.JobStatus{Attempt: 1}, nil, 0, 0},
		{"no time", at(1, 0, 5, 5), nil, 0, 0},
	} {
		if got := taskRatesOf(tt.now, tt.before); got.cores != tt.cores || got.read != tt.read {
			t.Errorf("%s: got %v cores, %v read; want %v, %v", tt.name, got.cores, got.read, tt.cores, tt.read)
		}
	}
}

// TestSize holds that an amount takes few characters.
func TestSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0B", 999: "999B", 1000: "1.0K", 1 << 20: "1.0M", 10<<20 + 1: "10M",
		1023 << 20: "1.0G", 612 << 20: "612M", 1<<63 - 1: "8192P"} {
		if got := textOrDash(n, ""); n > 0 && got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}
