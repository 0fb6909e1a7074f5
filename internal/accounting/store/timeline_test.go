package store

import (
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// TestUsagePoints: points by hour and by day sum to the lines of the same filter.
func TestUsagePoints(t *testing.T) {
	feed := testFeed(1, 60)
	onEngines(t, func(t *testing.T, options func() Options) {
		s := openStore(t, options())
		ingestAll(t, s, 1, feed, 500)
		compute(t, s, workloadEnd)
		r := s.Reporter(t.Context())
		when := accounting.TimeRange{From: workloadStart + 5*accounting.HourMillis,
			To: workloadStart + 61*accounting.HourMillis}
		for _, filter := range []accounting.Filter{{}, {Group: "physics", Bands: accounting.Bands(roost.BatchBand)}} {
			lines, err := r.UsageLines(accounting.UsageQuery{Range: when, By: accounting.ByBand, Filter: filter})
			must(t, err)
			for _, byHour := range []bool{false, true} {
				points, err := r.UsagePoints(when, filter, byHour)
				must(t, err)
				sums := map[roost.PriorityBand]*accounting.Amounts{}
				for i, p := range points {
					if step := p.At.Hour(); step != p.At || !byHour && p.At.Day() != p.At ||
						i > 0 && (p.At < points[i-1].At || p.At == points[i-1].At && p.Band <= points[i-1].Band) {
						t.Errorf("by hour %v: point %d is %v, %v", byHour, i, p.At.Time(), p.Band)
					}
					entry(sums, p.Band).Add(&p.Amounts)
				}
				if len(lines) == 0 || len(sums) != len(lines) || byHour && len(points) < len(lines)*10 {
					t.Fatalf("by hour %v: %d points of %d bands, want %d", byHour, len(points), len(sums), len(lines))
				}
				for _, l := range lines {
					if *sums[l.Band] != l.Amounts {
						t.Errorf("by hour %v, %v: got %+v, want %+v", byHour, l.Band, *sums[l.Band], l.Amounts)
					}
				}
			}
		}
	})
}
