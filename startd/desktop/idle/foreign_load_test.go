package idle

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

func TestPressureIsRead(t *testing.T) {
	dir := t.TempDir()
	p := &PressureSource{proc: dir}
	if s := p.readPressure(); s.Health != Absent || !strings.Contains(s.Text, "psi=1") {
		t.Errorf("without PSI: %+v", s)
	}
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "pressure"), 0o755); err != nil {
		t.Fatal(err)
	}
	put("meminfo", "MemTotal:       16384 kB\nMemFree:  1 kB\nMemAvailable:    8192 kB\n")
	put("pressure/cpu", "some avg10=85.91 avg60=45.33 avg300=29.12 total=15236677140\nfull avg10=0.00 avg60=0.00 "+
		"avg300=0.00 total=0\n")
	put("pressure/memory",
		"some avg10=0.25 avg60=0.00 avg300=0.00 total=9\nfull avg10=0.10 avg60=0.00 avg300=0.00 total=0\n")
	if s := p.readPressure(); s.Health != Healthy || s.CPUPressure != 85.91 || s.MemoryPressure != 0.25 ||
		s.MemoryAvailable != 8<<20 {
		t.Errorf("got %+v", s)
	}
}

func TestBusyTicks(t *testing.T) {
	if n, ok := busyTicks("cpu  100 10 30 5000 700 3 4 99 50 0\ncpu0 …\n"); n != 147 || !ok {
		t.Errorf("got %d, %v, want user, nice, system, irq and softirq", n, ok)
	}
	for _, text := range []string{"", "cpu 1 2\n", "intr 1 2 3 4 5 6 7 8\n", "cpu a b c d e f g h\n"} {
		if _, ok := busyTicks(text); ok {
			t.Errorf("%q makes sense", text)
		}
	}
}

// TestForeignWork feeds a meter with one measurement per second. Each contains the CPU
// time of all processes and of our part.
func TestForeignWork(t *testing.T) {
	m := &foreignMeter{}
	var now roost.BootTime = time.Hour
	var all uint64
	own := map[string]uint64{"a": 50e9}
	second := func(cores float64, parts map[string]float64) float64 {
		now += time.Second
		all += uint64(cores * 1e9)
		next := map[string]uint64{}
		for name, c := range parts {
			next[name] = own[name] + uint64(c*1e9)
		}
		own = next
		return m.measure(now, all, own)
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 0.02 {
			t.Errorf("%s: %.3f cores, want %.3f", what, got, want)
		}
	}
	near("nothing is known at first", second(4, map[string]float64{"a": 1}), 0)
	for range 10 {
		near("all is ours", second(2, map[string]float64{"a": 2}), 0)
	}
	near("the first second of two cores", second(3, map[string]float64{"a": 1}), 2*(1-math.Exp2(-1./3)))
	second(3, map[string]float64{"a": 1})
	near("after three", second(3, map[string]float64{"a": 1}), 1)
	own["b"] = 1000e9 // it ran before and was unknown to us
	second(3, map[string]float64{"a": 1, "b": 0})
	for range 40 {
		second(3, map[string]float64{"a": 1, "b": 2})
	}
	near("a part that is new", m.cores, 0)
	own["a"] = 0 // restarted under the same name
	for range 40 {
		second(1.5, map[string]float64{"a": 0.5, "b": 1})
	}
	near("a part that was made anew", m.cores, 0)
	now += 8 * time.Hour // asleep: the sums did not change
	near("after a night's sleep", m.measure(now, all, own), 0)
}

// TestLookAtThisMachine reads the real files.
func TestLookAtThisMachine(t *testing.T) {
	for _, s := range []Source{NewPressure(), NewForeignWork(func() map[string]uint64 { return nil })} {
		done := make(chan SourceReading, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go s.Run(ctx, func(s SourceReading) {
			select {
			case done <- s:
			default:
			}
			cancel()
		})
		if got := <-done; got.Name != s.Name() || got.Health == Broken || got.Text == "" {
			t.Errorf("%+v", got)
		}
	}
}
