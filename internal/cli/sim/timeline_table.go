package sim

import (
	"fmt"
	"strconv"

	"github.com/roost-batch/roost/internal/plot"
	"github.com/roost-batch/roost/internal/sim"
)

// Into how many spans the time of a replay is cut for a table and for a picture, in which
// more are a thicket, and how many users have a line of their own.
const (
	tableRows   = 600
	chartPoints = 120
	simUsers    = 5
)

// courseTable is a course as a table, a span a row.
func courseTable(course *sim.TimeSeries) (head []string, rows [][]string) {
	head = []string{"from_seconds", "seconds", "used_processors", "waiting_jobs", "most_waiting_jobs", "started_jobs",
		"wait_seconds", "longest_wait_seconds"}
	for _, u := range course.Users {
		head = append(head, fmt.Sprintf("user_%d_processors", u))
	}
	head = append(head, "others_processors")
	for i := range course.Spans {
		s := &course.Spans[i]
		row := []string{
			strconv.FormatInt(course.From+int64(i)*course.Length, 10), strconv.FormatInt(course.Length, 10),
			decimalText(s.Used), decimalText(s.Waiting),
			strconv.Itoa(s.MaxWaiting), strconv.Itoa(s.Started), decimalText(s.Wait),
			strconv.FormatInt(s.LongestWait, 10),
		}
		for _, v := range s.UsedBy {
			row = append(row, decimalText(v))
		}
		rows = append(rows, row)
	}
	return head, rows
}

// decimalText is a number as tables have it, to the thousandth.
func decimalText(v float64) string { return strconv.FormatFloat(v, 'f', 3, 64) }

// courseCharts are the pictures of a course: use, queue, waits and shares over time, and
// how the waits are spread.
func courseCharts(course *sim.TimeSeries, played *sim.Result, processors int64) []plot.Chart {
	unit, seconds := "days", 86400.
	if float64(course.Length)*float64(len(course.Spans)) < 2*seconds {
		unit, seconds = "hours", 3600
	}
	over := func(value func(s *sim.TimeSpan) float64) (points []plot.DataPoint) {
		for i := range course.Spans {
			points = append(points, plot.DataPoint{X: float64(int64(i)*course.Length) / seconds,
				Y: value(&course.Spans[i])})
		}
		if n := len(points); n > 0 { // the last span has a width, too
			points = append(points, plot.DataPoint{X: float64(int64(n)*course.Length) / seconds, Y: points[n-1].Y})
		}
		return points
	}
	time := plot.ChartAxis{Label: "time since the first submission (" + unit + ")"}
	of := 100 / float64(processors)
	shares := plot.Chart{Title: "Shares", X: time, Y: plot.ChartAxis{Label: "of the processors (%)"}}
	for k := 0; k <= len(course.Users); k++ {
		name := "all others"
		if k < len(course.Users) {
			name = fmt.Sprintf("user %d", course.Users[k])
		}
		shares.Series = append(shares.Series,
			plot.ChartSeries{Name: name, Kind: plot.Step, Points: over(func(s *sim.TimeSpan) float64 {
				return s.UsedBy[k] * of
			})})
	}
	waits := make([]float64, len(played.Jobs))
	for i := range waits {
		waits[i] = max(float64(played.Jobs[i].Waited()), 1)
	}
	return []plot.Chart{
		{Title: "Utilisation", X: time, Y: plot.ChartAxis{Label: "of the processors (%)", Max: 100},
			Series: []plot.ChartSeries{
				{Name: "used", Kind: plot.Step, Points: over(func(s *sim.TimeSpan) float64 { return s.Used * of })},
			}},
		{Title: "Queue", X: time, Y: plot.ChartAxis{Label: "jobs that wait"}, Series: []plot.ChartSeries{
			{Name: "most at once", Kind: plot.Step, Points: over(func(s *sim.TimeSpan) float64 {
				return float64(s.MaxWaiting)
			})},
			{Name: "on the mean", Kind: plot.Step, Points: over(func(s *sim.TimeSpan) float64 { return s.Waiting })},
		}},
		{Title: "Waits", X: time, Y: plot.ChartAxis{Label: "wait of those that start (hours)"},
			Series: []plot.ChartSeries{
				{Name: "longest", Kind: plot.Step, Points: over(func(s *sim.TimeSpan) float64 {
					return float64(s.LongestWait) / 3600
				})},
				{Name: "on the mean", Kind: plot.Step, Points: over(func(s *sim.TimeSpan) float64 {
					return s.Wait / 3600
				})},
			}},
		shares,
		{Title: "How long jobs wait", X: plot.ChartAxis{Label: "wait (s), at least 1", Log: true},
			Y: plot.ChartAxis{Label: "jobs that wait no longer (%)", Max: 100}, Series: []plot.ChartSeries{
				{Name: "jobs", Kind: plot.Step, Points: plot.CDF(waits)},
			}},
	}
}
