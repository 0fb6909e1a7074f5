package meter

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
)

// windowClock drives the windows of one attempt as the meters do, every two seconds.
type windowClock struct {
	usageWindows
	now *wire.TaskUsage
}

func newWindowClock(at time.Time) *windowClock {
	return &windowClock{usageWindows: usageWindows{length: defaultWindow}, now: &wire.TaskUsage{Time: at.UnixNano()}}
}

// run lets time pass with a number of cores busy and an amount of memory held.
func (c *windowClock) run(d time.Duration, cores float64, memory roost.Bytes) {
	for range d / usageSampleInterval {
		c.pass(usageSampleInterval, cores, memory)
		c.add(&wire.TaskUsage{Time: c.now.Time, Wall: c.now.Wall, UserCpu: c.now.UserCpu, Memory: c.now.Memory,
			ReadBytes: c.now.ReadBytes, Gpu: 0.5}, cores)
	}
}

func (c *windowClock) pass(d time.Duration, cores float64, memory roost.Bytes) {
	c.now.Time += int64(d)
	c.now.Wall += int64(d)
	c.now.UserCpu += int64(float64(d) * cores)
	c.now.ReadBytes += int64(d / time.Second)
	c.now.Memory = int64(memory)
}

// TestUsageWindows: windows end at the borders of the wall clock, and their parts sum to
// the whole attempt.
func TestUsageWindows(t *testing.T) {
	begin := time.Date(2026, 3, 1, 10, 57, 0, 0, time.UTC)
	c := newWindowClock(begin)
	c.run(3*time.Minute, 1, roost.GiB) // to the border
	c.run(5*time.Minute, 2, 3*roost.GiB)
	c.run(4*time.Minute, 0.5, roost.MiB)
	windows := c.finish(c.now)
	if len(windows) != 3 {
		t.Fatalf("got %d windows: %v", len(windows), windows)
	}
	var wall, cpu, read int64
	for i, w := range windows {
		wall, cpu, read = wall+w.GetWall(), cpu+w.GetCpu(), read+w.GetReadBytes()
		if got, want := w.GetCpuMax(), []uint32{1000, 2000, 500}[i]; got < want || got > 2000 || w.GetGpu() != 500 {
			t.Errorf("window %d: %v", i, w)
		}
		if number := w.GetBegin() / defaultWindow.Milliseconds(); i > 0 &&
			number != windows[i-1].GetBegin()/defaultWindow.Milliseconds()+1 {
			t.Errorf("window %d begins at %v", i, time.UnixMilli(w.GetBegin()).UTC())
		}
	}
	if windows[0].GetBegin() != begin.UnixMilli() || windows[1].GetMemory() != int64(3*roost.GiB) {
		t.Errorf("got %v", windows)
	}
	if wall != (12*time.Minute).Milliseconds() || cpu != (15*time.Minute).Milliseconds() || read != 12*60 {
		t.Errorf("together %d ms, %d ms of CPU time, %d bytes", wall, cpu, read)
	}
}

// TestShortAttemptHasNoWindows: an attempt that is shorter than a window costs nothing,
// also across a border.
func TestShortAttemptHasNoWindows(t *testing.T) {
	c := newWindowClock(time.Date(2026, 3, 1, 10, 59, 58, 0, time.UTC))
	c.run(10*time.Second, 1, roost.GiB)
	if w := c.unsent(c.now.Wall); w != nil {
		t.Errorf("it sends %v", w)
	}
	if w := c.finish(c.now); w != nil {
		t.Errorf("it ends with %v", w)
	}
}

// TestWindowsAreBounded: a meter remembers two hours however long the attempt runs and
// wherever the clock goes. A schedd that is new gets them again.
func TestWindowsAreBounded(t *testing.T) {
	c := newWindowClock(time.Date(2026, 3, 1, 10, 2, 0, 0, time.UTC))
	sent := 0
	for i := range 200 {
		c.pass(time.Duration(rand.N(int64(10*time.Minute))), 1, roost.GiB)
		if i%50 == 49 { // somebody sets the clock
			c.now.Time -= int64(30 * time.Minute)
		}
		c.run(usageSampleInterval, 1, roost.GiB)
		sent += len(c.unsent(c.now.Wall))
		want := len(c.ended)
		if c.now.Wall < int64(defaultWindow) { // it may end before it is worth a window
			want = 0
		}
		if len(c.ended) > maxUsageWindow || c.sent != want {
			t.Fatalf("after %v it has %d windows, %d sent", time.Duration(c.now.Wall), len(c.ended), c.sent)
		}
	}
	if sent < 60 {
		t.Errorf("it sent %d", sent)
	}
	s, host := New(Options{}), &reportRecorder{}
	m := &attemptMeter{Attempt: Attempt{Schedd: "s", Claim: slot.ClaimID(1)}, last: c.now, windows: c.usageWindows}
	s.add(m)
	for _, want := range []int{0, len(c.ended), 0} {
		s.reportUsage(host, time.Now(), true)
		got := 0
		for _, r := range host.reports {
			for _, a := range r.GetAttempts() {
				got += len(a.GetWindows())
			}
		}
		if got != want {
			t.Errorf("got %d windows, want %d", got, want)
		}
		host.reports = nil
		if want == 0 {
			s.ResendWindows("s")
		}
	}
}
