package meter

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
)

// reportRecorder is a host that keeps the reports which it gets.
type reportRecorder struct {
	Host
	reports []*wire.UsageReport
}

func (r *reportRecorder) OnUsageReport(_ string, report *wire.UsageReport) {
	r.reports = append(r.reports, report)
}

// TestReportsTakeTurns: attempts that one report leaves out come first in the next.
func TestReportsTakeTurns(t *testing.T) {
	s, host := New(Options{}), &reportRecorder{}
	for i := range maxReported + 10 {
		s.add(&attemptMeter{Attempt: Attempt{Schedd: "s", Claim: slot.ClaimID(i + 1)},
			last: &wire.TaskUsage{Memory: 1}})
	}
	seen := 0
	for range 2 {
		s.reportUsage(host, time.Now(), true)
		n := len(host.reports[0].GetAttempts())
		if n > maxReported {
			t.Errorf("a report of %d", n)
		}
		seen, host.reports = seen+n, host.reports[1:]
	}
	if seen != maxReported+10 {
		t.Errorf("%d were told of", seen)
	}
	if s.reportUsage(host, time.Now(), true); len(host.reports) != 0 {
		t.Error("nothing has changed, and that was told")
	}
}

func TestMemoryLeft(t *testing.T) {
	path := filepath.Join(t.TempDir(), "meminfo")
	text := "MemTotal:       24000000 kB\nMemFree:         1000000 kB\nMemAvailable:    2000000 " +
		"kB\nHugePages_Total:       0\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, want := availableMemory(path),
		(slot.MemoryPressure{Available: 2_000_000 * roost.KiB, Total: 24_000_000 * roost.KiB}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := availableMemory(path + "x"); got != (slot.MemoryPressure{}) {
		t.Errorf("of no file: %+v", got)
	}
}
