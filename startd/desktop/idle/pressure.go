package idle

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// PressureSource measures how much work waits for memory and for CPU time (PSI, Linux
// 4.20, Documentation/accounting/psi.rst). It also measures the available memory.
type PressureSource struct{ proc string }

// NewPressure returns the source.
func NewPressure() *PressureSource { return &PressureSource{proc: "/proc"} }

// Name is the source's name.
func (p *PressureSource) Name() string { return "pressure" }

const measureInterval = time.Second

// Run measures each second.
func (p *PressureSource) Run(ctx context.Context, tell func(SourceReading)) {
	runPeriodically(ctx, measureInterval, func() { tell(p.readPressure()) })
}

func (p *PressureSource) readPressure() SourceReading {
	s := SourceReading{Name: p.Name(), Health: Healthy}
	text, _ := os.ReadFile(filepath.Join(p.proc, "meminfo"))
	s.MemoryAvailable = memoryAvailable(string(text))
	cpu, err := os.ReadFile(filepath.Join(p.proc, "pressure", "cpu"))
	memory, merr := os.ReadFile(filepath.Join(p.proc, "pressure", "memory"))
	if err != nil || merr != nil {
		// Without PSI only the available memory is known.
		s.Health, s.Text = Absent,
			"this kernel counts no pressure (Linux 4.20, with CONFIG_PSI, and psi=1 where it is off by default)"
		return s
	}
	s.CPUPressure, s.MemoryPressure = parseAverage10(string(cpu)), parseAverage10(string(memory))
	s.Text = fmt.Sprintf("of the last 10 s somebody waited for processor time in %.0f %%, for memory in %.0f %%",
		s.CPUPressure, s.MemoryPressure)
	return s
}

// parseAverage10 parses "some avg10=1.53 avg60=…".
func parseAverage10(text string) float64 {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "some avg10="); ok {
			word, _, _ := strings.Cut(rest, " ")
			v, _ := strconv.ParseFloat(word, 64)
			return v
		}
	}
	return 0
}

// memoryAvailable parses MemAvailable of /proc/meminfo, in bytes.
func memoryAvailable(text string) int64 {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return n << 10
		}
	}
	return 0
}

// runPeriodically calls f at once and then at an interval until ctx ends.
func runPeriodically(ctx context.Context, every time.Duration, f func()) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		f()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
