package sim

import (
	"fmt"
	"strconv"
	"time"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/plot"
	"github.com/roost-batch/roost/internal/sim/hrm"
)

// table is the study as a table, a run a row. Without a rate all jobs came at once.
func (s *hrmStudy) table() (head []string, rows [][]string) {
	head = []string{
		"jobs", "jobs_per_second", "style", "mean_delay_seconds", "p95_delay_seconds", "worst_delay_seconds",
		"first_container_seconds", "job_seconds", "busy",
		"proposed_containers", "conflicting_containers",
	}
	for i := range s.rows {
		r := &s.rows[i]
		rate := ""
		if r.rate > 0 {
			rate = strconv.Itoa(r.rate)
		}
		f := &r.figures
		row := []string{strconv.Itoa(r.options.Jobs), rate, r.options.Style.String()}
		for _, d := range []time.Duration{f.MeanDelay, f.P95Delay, f.MaxDelay, f.FirstStart, f.LastEnd} {
			row = append(row, strconv.FormatFloat(d.Seconds(), 'f', 6, 64))
		}
		rows = append(rows, append(row, strconv.FormatFloat(f.Busy, 'f', 6, 64), strconv.Itoa(f.Proposed),
			strconv.Itoa(f.Conflicts)))
	}
	return head, rows
}

// charts are the curves of the paper's figures 6, 7(a), 7(b) and 8.
func (s *hrmStudy) charts() []plot.Chart {
	curves := func(arriving bool, value func(f *hrm.RunFigures) float64) (all []plot.ChartSeries) {
		for _, one := range hrmStyles {
			series := plot.ChartSeries{Name: one.words, Kind: plot.LineWithDots}
			for i := range s.rows {
				if r := &s.rows[i]; r.options.Style == one.style && (r.rate > 0) == arriving {
					x := float64(r.options.Jobs)
					if arriving {
						x = float64(r.rate)
					}
					series.Points = append(series.Points, plot.DataPoint{X: x, Y: value(&r.figures)})
				}
			}
			all = append(all, series)
		}
		return all
	}
	worst := func(f *hrm.RunFigures) float64 { return f.MaxDelay.Seconds() * 1000 }
	conflicts := func(f *hrm.RunFigures) float64 { return 100 * f.ConflictRatio() }
	rate := plot.ChartAxis{Label: "jobs that come in a second", Log: true}
	published := func(name string, kind plot.SeriesKind, from, to plot.DataPoint) plot.ChartSeries {
		return plot.ChartSeries{Name: "the paper: " + name, Kind: kind, Points: []plot.DataPoint{from, to}}
	}
	distributed := curves(true, conflicts)
	distributed[0] = plot.ChartSeries{} // the leader has nobody to conflict with, and keeps its colour
	var charts []plot.Chart
	if s.rows[0].rate == 0 {
		charts = append(charts, plot.Chart{Title: "Worst delay of jobs that come at once",
			X: plot.ChartAxis{Label: "jobs of 40 containers"}, Y: plot.ChartAxis{Label: "delay (ms)", Log: true},
			Series: append(curves(false, worst), published("central", plot.Dots, plot.DataPoint{X: 60, Y: 50},
				plot.DataPoint{X: 180, Y: 14_000}),
				published("HRM", plot.Dots, plot.DataPoint{X: 60, Y: 50}, plot.DataPoint{X: 180, Y: 2500}))})
	}
	if s.rows[len(s.rows)-1].rate == 0 {
		return charts
	}
	return append(charts,
		plot.Chart{Title: "Mean delay of jobs that come one by one", X: rate, Y: plot.ChartAxis{Label: "delay (ms)"},
			Series: curves(true, func(f *hrm.RunFigures) float64 {
				return f.MeanDelay.Seconds() * 1000
			})},
		plot.Chart{Title: "How busy the scheduler is", X: rate, Y: plot.ChartAxis{Label: "jobs that wait for it (%)"},
			Series: curves(true, func(f *hrm.RunFigures) float64 {
				return 100 * f.Busy
			})},
		plot.Chart{Title: "Conflicts", X: rate, Y: plot.ChartAxis{Label: "of what is proposed (%)", Max: 100},
			Series: append(distributed, published("up to 45 %", plot.Reference, plot.DataPoint{X: 10, Y: 45},
				plot.DataPoint{X: 100, Y: 45}))},
	)
}

// json prints the study for programs.
func (s *hrmStudy) json(costs string) error {
	runs := []frame.JSONDocument{}
	for i := range s.rows {
		r := &s.rows[i]
		f := &r.figures
		steps := frame.JSONDocument{}
		for _, one := range r.steps {
			steps[one.step.String()] = frame.JSONDocument{"number": one.spent.Count,
				"seconds":      one.spent.Total.Seconds(),
				"most_seconds": one.spent.Max.Seconds()}
		}
		runs = append(runs, frame.JSONDocument{
			"jobs": r.options.Jobs, "jobs_per_second": r.rate, "style": r.options.Style.String(),
			"delay_seconds": frame.JSONDocument{"mean": f.MeanDelay.Seconds(), "p95": f.P95Delay.Seconds(),
				"most": f.MaxDelay.Seconds()},
			"first_container_seconds": f.FirstStart.Seconds(), "job_seconds": f.LastEnd.Seconds(), "busy": f.Busy,
			"proposed": f.Proposed, "conflicts": f.Conflicts,
			"steps": steps, "digest": fmt.Sprintf("%016x", r.digest),
		})
	}
	o := &s.rows[0].options
	return frame.PrintJSON(s.call.Stdout, frame.JSONDocument{
		"machines": o.Machines, "cores": o.Cores, "schedds": o.Schedds, "containers": o.Containers, "seed": o.Seed,
		"costs":           costs,
		"message_seconds": o.MessageDelay.Seconds(), "commit_seconds": o.CommitDelay.Seconds(), "runs": runs,
		"events": s.events, "digest": fmt.Sprintf("%016x", s.digest()),
	})
}
