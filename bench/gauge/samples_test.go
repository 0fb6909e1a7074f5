package gauge

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	var s DurationSamples
	for i := range 100 {
		s = append(s, time.Duration(100-i)*time.Millisecond)
	}
	for percent, want := range map[int]time.Duration{0: 1, 50: 50, 99: 99, 100: 100} {
		if got := s.Percentile(percent); got != want*time.Millisecond {
			t.Errorf("%d: got %v, want %v", percent, got, want*time.Millisecond)
		}
	}
	if got := (DurationSamples{}).Percentile(50); got != 0 {
		t.Errorf("of nothing: got %v", got)
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		of   FigureSamples
		want float64
	}{{nil, 0}, {FigureSamples{3}, 3}, {FigureSamples{9, 1, 5}, 5}, {FigureSamples{4, 1, 2, 3}, 3}} {
		if got := c.of.Median(); got != c.want {
			t.Errorf("%v: got %v, want %v", c.of, got, c.want)
		}
	}
}

func TestParseStat(t *testing.T) {
	p, ok := parseStat("42 (a b) c) S 7 1 1 0 -1 4194560 100 0 0 0 150 50 25 75 20 0 1 0 99 1000 3 0 0",
		"prog\x00-x\x00")
	want := ProcessStat{PID: 42, Parent: 7, Command: "a b) c", Args: "prog -x ", RSS: 3 * int64(os.Getpagesize()),
		CPUSeconds: 2, ReapedCPUSeconds: 1}
	if !ok || p != want {
		t.Errorf("got %+v %v, want %+v", p, ok, want)
	}
	for _, bad := range []string{"", "42", "42 (x", ") 42 (", "42 (x) S 1", "x (y) " + strings.Repeat("1 ", 30)} {
		if p, ok := parseStat(bad, ""); ok {
			t.Errorf("%q: got %+v", bad, p)
		}
	}
}

func TestParsePSS(t *testing.T) {
	got, err := parsePSS([]byte("5589-7ffd ---p 00000000 00:00 0   [rollup]\nRss:      1772 kB\nPss:       " +
		"222 kB\nPss_Anon:  112 kB\n"))
	if err != nil || got != 222<<10 {
		t.Errorf("got %d, %v", got, err)
	}
	if _, err := parsePSS([]byte("Rss: 1 kB\n")); err == nil {
		t.Error("no error without a line Pss")
	}
}

// TestProcesses finds the test's own process.
func TestProcesses(t *testing.T) {
	for _, p := range ListProcesses() {
		if p.PID != os.Getpid() {
			continue
		}
		if p.Parent != os.Getppid() || p.RSS < 1<<20 || !p.IsBelow(os.Args[0]) {
			t.Errorf("got %+v", p)
		}
		if pss, err := p.PSS(); err == nil && (pss <= 0 || pss > 2*p.RSS) {
			t.Errorf("its PSS is %d, and its RSS %d", pss, p.RSS)
		}
		return
	}
	t.Error("this process is not among them")
}
