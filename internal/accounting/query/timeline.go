package query

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// PointLine is what a band held and used within a day or an hour.
type PointLine struct {
	At   accounting.Millis `json:"at"`
	Band string            `json:"band"`
	accounting.Amounts
}

// The steps of a timeline. An hour is for short ranges.
const (
	StepDay  = "day"
	StepHour = "hour"
	maxSteps = 31 * accounting.DayMillis // of hours
)

// timeline emits amounts by time and band: of the jobs that the filter lets pass, or of
// the whole pool.
func (q *Query) timeline(p accounting.Reporter, filter accounting.Filter, emit func(line []byte) error) error {
	if q.Report == Bands {
		filter = accounting.Filter{}
	}
	if q.Step == StepHour && q.To-q.From > maxSteps {
		return fmt.Errorf("report: %w: by the hour it covers at most 31 days", roost.Invalid)
	}
	points, err := p.UsagePoints(q.timeRange(), filter, q.Step == StepHour)
	lines := make([]PointLine, 0, len(points))
	for i := range points {
		lines = append(lines, PointLine{points[i].At, points[i].Band.String(), points[i].Amounts})
	}
	return emitAll(lines, err, q.limit(), emit)
}
