package view

import (
	"math"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/accounting"
)

// TestUsageCharts: the areas of the chart are the core hours of the report. A long range
// has weeks or months in place of days.
func TestUsageCharts(t *testing.T) {
	to := time.Date(2026, 11, 28, 3, 0, 0, 0, time.UTC)
	for _, days := range []int{1, 30, 399, 500, 3660} {
		r := UsageReport{from: to.AddDate(0, 0, -days), to: to}
		want := 0.0
		for at := r.from.Truncate(24 * time.Hour); at.Before(to); at = at.AddDate(0, 0, 1) {
			for _, band := range []string{"batch", "production"} {
				r.Days = append(r.Days, UsagePoint{Band: band, CoreHours: 2, CPUHours: 1, at: at})
				want += 2
			}
		}
		c := r.Charts()[0]
		got, used := 0.0, 0.0
		for _, s := range c.Series {
			for _, v := range s.Values {
				if s.Area {
					got += v
				} else {
					used += v
				}
			}
		}
		if math.Abs(got-want) > 1e-6 || math.Abs(used-want/2) > 1e-6 || len(c.Times) > maxColumns+1 ||
			c.Series[0].Name != "held, production" {
			t.Errorf("%d days: %v held, %v used of %v, %d columns", days, got, used, want, len(c.Times))
		}
	}
}

// TestReclaimedHours: the hours of all classes sum to the report capacity.
func TestReclaimedHours(t *testing.T) {
	var r Reclaimed
	var lines []accounting.CapacityLine
	var want accounting.CapacityLine
	for hour := range 5 {
		for _, class := range []string{"cpu", "gpu"} {
			l := accounting.CapacityLine{Class: class, Hour: accounting.Millis(hour) * accounting.HourMillis,
				Total: int64(hour+1) * 3_600_000, Held: int64(hour) * 1_800_000, Used: int64(hour) * 900_000}
			lines = append(lines, l)
			want.Add(&l)
		}
	}
	r.addMachines(lines)
	if len(r.Hours) != 5 || r.Total != float64(want.Total)/millisAnHour || r.Held != float64(want.Held)/millisAnHour ||
		r.Used != float64(want.Used)/millisAnHour {
		t.Errorf("got %+v, want %+v", r, want)
	}
}
