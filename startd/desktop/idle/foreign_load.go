package idle

import (
	"context"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boottime"
)

// ForeignLoadSource measures how many cores other processes than tasks use. An example is
// a computation of the owner that runs during lunch.
type ForeignLoadSource struct {
	stat string // "/proc/stat"
	// CPU time that each part of Roost's work has used, in nanoseconds, by name
	taskCPUTime func() map[string]uint64
}

// NewForeignWork returns the source. Ours returns the CPU time that each part of Roost's
// work has used so far, in nanoseconds, by name. A new part counts from its first
// measurement on, as its earlier time does not belong to the last second.
func NewForeignWork(ours func() map[string]uint64) *ForeignLoadSource {
	return &ForeignLoadSource{stat: "/proc/stat", taskCPUTime: ours}
}

// Name is the source's name.
func (f *ForeignLoadSource) Name() string { return "other work" }

// Run measures each second.
func (f *ForeignLoadSource) Run(ctx context.Context, tell func(SourceReading)) {
	m := &foreignMeter{}
	runPeriodically(ctx, measureInterval, func() {
		s := SourceReading{Name: f.Name(), Health: Healthy}
		text, err := os.ReadFile(f.stat)
		ticks, ok := busyTicks(string(text))
		if err != nil || !ok {
			s.Health, s.Text = Broken, fmt.Sprintf("%s says nothing of processors (%v); mount /proc", f.stat, err)
			tell(s)
			return
		}
		s.ForeignCPU = m.measure(boottime.Now(), ticks*(uint64(time.Second)/ticksPerSecond), f.taskCPUTime())
		s.Text = fmt.Sprintf("%.1f cores busy with it", s.ForeignCPU)
		tell(s)
	})
}

// ticksPerSecond is USER_HZ, which is 100 on every machine that Go runs on.
const ticksPerSecond = 100

// busyTicks parses the total busy time of all processors in /proc/stat. Time for waiting
// for disks, or that a hypervisor took, does not count.
func busyTicks(text string) (busy uint64, ok bool) {
	line, _, _ := strings.Cut(text, "\n")
	f := strings.Fields(line)
	if len(f) < 8 || f[0] != "cpu" {
		return 0, false
	}
	for i, word := range f[1:8] { // user nice system idle iowait irq softirq
		n, err := strconv.ParseUint(word, 10, 64)
		if err != nil {
			return 0, false
		}
		if i != 3 && i != 4 {
			busy += n
		}
	}
	return busy, true
}

// halfLife is the half-life of the smoothed load. A compiler run of two seconds is
// ignored, but one of ten seconds counts.
const halfLife = 3 * time.Second

// foreignMeter converts sums of CPU time to cores.
type foreignMeter struct {
	at        roost.BootTime
	totalTime uint64 // nanoseconds, of all processes
	taskTime  map[string]uint64
	cores     float64 // smoothed
}

// measure returns the cores that other processes used lately, from the current sums. A
// sum that decreases belongs to a part that was restarted.
func (m *foreignMeter) measure(now roost.BootTime, busy uint64, ours map[string]uint64) float64 {
	defer func() { m.at, m.totalTime, m.taskTime = now, busy, ours }()
	past := now - m.at
	if m.at == 0 || past <= 0 || busy < m.totalTime {
		return m.cores
	}
	var own uint64
	for name, n := range ours {
		if was, ok := m.taskTime[name]; ok && n > was {
			own += n - was
		}
	}
	cores := max(float64(busy-m.totalTime)-float64(own), 0) / float64(past)
	weight := math.Exp2(-float64(past) / float64(halfLife))
	m.cores = m.cores*weight + cores*(1-weight)
	return m.cores
}
