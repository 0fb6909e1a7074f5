package meter

import (
	"math"
	"os"
	"time"

	"github.com/roost-batch/roost/internal/failpoint"
	"github.com/roost-batch/roost/internal/wire"
)

// The length of a window, and how many hours of 12 windows an attempt's meter remembers:
// the present one and the one before, which its schedd gets again after a reconnection.
const (
	defaultWindow  = 5 * time.Minute
	hourWindows    = 12
	maxUsageWindow = 2 * hourWindows
)

// WindowVariable is an environment variable with another length of windows. Only builds
// for tests of faults read it.
const WindowVariable = "ROOST_USAGE_WINDOW"

// windowLength returns how long a window is.
func windowLength() time.Duration {
	if failpoint.Enabled {
		if d, err := time.ParseDuration(os.Getenv(WindowVariable)); err == nil && d > 0 {
			return d
		}
	}
	return defaultWindow
}

// usageWindows divides the measurements of one attempt into windows of the wall clock. A
// window ends with the first measurement after its border, so no measurement is made for
// it. An attempt that is shorter than a window has none: its sums say as much.
//
// The meter's lock guards it.
type usageWindows struct {
	length time.Duration
	ended  []*wire.UsageWindow // oldest first, at most maxUsageWindow
	sent   int                 // so many of them were sent
	open   openWindow
}

// openWindow is the window that a measurement falls into.
type openWindow struct {
	number   int64           // of the window since 1970; 0: there is none
	from     *wire.TaskUsage // the counters at its begin
	cpuMax   float64         // cores
	memory   int64
	cache    int64
	gpu      float64 // sum over the measurements
	gpuMax   int64   // bytes
	measured int
}

// add takes in a measurement and the cores that were kept busy since the one before.
func (w *usageWindows) add(now *wire.TaskUsage, rate float64) {
	number := now.GetTime() / int64(w.length)
	if w.open.number == 0 {
		w.open = openWindow{number: number, from: now}
		if now.GetWall() <= int64(w.length) { // otherwise a startd before this one measured the rest
			began := now.GetTime() - now.GetWall()
			w.open.from = &wire.TaskUsage{Time: began}
			w.open.number = began / int64(w.length)
		}
	}
	o := &w.open
	o.cpuMax, o.memory = max(o.cpuMax, rate), max(o.memory, now.GetMemory())
	o.cache, o.gpuMax = max(o.cache, now.GetCache()), max(o.gpuMax, now.GetGpuMemory())
	o.gpu += now.GetGpu()
	o.measured++
	if number != o.number {
		w.end(now)
	}
}

// end ends the open window with a measurement, which begins the next one.
func (w *usageWindows) end(now *wire.TaskUsage) {
	o := &w.open
	if wall := now.GetWall() - o.from.GetWall(); wall > 0 {
		cpu := now.GetUserCpu() + now.GetSystemCpu() - o.from.GetUserCpu() - o.from.GetSystemCpu()
		mean := float64(cpu) / float64(wall)
		w.ended = append(w.ended, &wire.UsageWindow{
			Begin: o.from.GetTime() / 1e6, Wall: wall / 1e6, Cpu: cpu / 1e6, CpuMax: thousandths(max(o.cpuMax, mean)),
			Memory: o.memory, Cache: o.cache, Gpu: thousandths(o.gpu / float64(max(o.measured, 1))),
			GpuMemory: o.gpuMax, ReadBytes: now.GetReadBytes() - o.from.GetReadBytes(),
			WriteBytes: now.GetWriteBytes() - o.from.GetWriteBytes(),
		})
	}
	w.open = openWindow{number: now.GetTime() / int64(w.length), from: now}
	w.forgetOld(now)
}

// forgetOld drops windows from before the hour before the present one. An hour has as
// many windows as there are in 60 minutes by default.
func (w *usageWindows) forgetOld(now *wire.TaskUsage) {
	hour := hourWindows * int64(w.length)
	since := (now.GetTime()/hour - 1) * hour / 1e6
	n := max(len(w.ended)-maxUsageWindow, 0)
	for n < len(w.ended) && w.ended[n].GetBegin() < since {
		n++
	}
	w.ended = append(w.ended[:0:0], w.ended[n:]...)
	w.sent = max(w.sent-n, 0)
}

// unsent returns the windows that were not sent yet, of an attempt that has run so long.
func (w *usageWindows) unsent(wall int64) []*wire.UsageWindow {
	if wall < int64(w.length) {
		return nil
	}
	windows := w.ended[w.sent:]
	w.sent = len(w.ended)
	return windows
}

// finish ends the last window and returns all that are remembered.
func (w *usageWindows) finish(now *wire.TaskUsage) []*wire.UsageWindow {
	if now.GetWall() < int64(w.length) {
		return nil
	}
	if w.open.from != nil {
		w.end(now)
	}
	return w.ended
}

// thousandths rounds a number of cores or GPUs.
func thousandths(n float64) uint32 { return uint32(min(max(n, 0)*1000+0.5, math.MaxInt32)) }

// ResendWindows has the schedd get the windows and the steps of its attempts once more.
// The schedd that had them may be gone.
func (s *Meters) ResendWindows(schedd string) {
	for _, m := range s.sortedMeters() {
		if m.Schedd == schedd {
			m.mu.Lock()
			m.windows.sent, m.resendSteps = 0, true
			m.mu.Unlock()
		}
	}
}
