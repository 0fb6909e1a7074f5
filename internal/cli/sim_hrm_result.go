package cli

import (
	"fmt"
	"strconv"
	"time"

	"github.com/roost-batch/roost/internal/plot"
	"github.com/roost-batch/roost/internal/sim/hrm"
)

// table is the study as a table, a run a row. Without a rate all jobs came at once.
func (s *hrmStudy) table() (head []string, rows [][]string) {
	head = []string{
		"jobs", "jobs_per_second", "style", "mean_delay_seconds", "p95_delay_seconds", "worst_delay_seconds", "first_container_seconds", "job_seconds", "busy",
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
		for _, d := range []time.Duration{f.Mean, f.P95, f.Worst, f.First, f.Last} {
			row = append(row, strconv.FormatFloat(d.Seconds(), 'f', 6, 64))
		}
		rows = append(rows, append(row, strconv.FormatFloat(f.Busy, 'f', 6, 64), strconv.Itoa(f.Proposed), strconv.Itoa(f.Conflicts)))
	}
	return head, rows
}

// charts are the curves of the paper's figures 6, 7(a), 7(b) and 8.
func (s *hrmStudy) charts() []plot.Chart {
	curves := func(arriving bool, value func(f *hrm.Figures) float64) (all []plot.Series) {
		for _, one := range hrmStyles {
			series := plot.Series{Name: one.words, Kind: plot.Marked}
			for i := range s.rows {
				if r := &s.rows[i]; r.options.Style == one.style && (r.rate > 0) == arriving {
					x := float64(r.options.Jobs)
					if arriving {
						x = float64(r.rate)
					}
					series.Points = append(series.Points, plot.Point{X: x, Y: value(&r.figures)})
				}
			}
			all = append(all, series)
		}
		return all
	}
	worst := func(f *hrm.Figures) float64 { return f.Worst.Seconds() * 1000 }
	conflicts := func(f *hrm.Figures) float64 { return 100 * f.Conflicting() }
	rate := plot.Axis{Label: "jobs that come in a second", Log: true}
	published := func(name string, kind plot.Kind, from, to plot.Point) plot.Series {
		return plot.Series{Name: "the paper: " + name, Kind: kind, Points: []plot.Point{from, to}}
	}
	distributed := curves(true, conflicts)
	distributed[0] = plot.Series{} // the leader has nobody to conflict with, and keeps its colour
	var charts []plot.Chart
	if s.rows[0].rate == 0 {
		charts = append(charts, plot.Chart{Title: "Worst delay of jobs that come at once", X: plot.Axis{Label: "jobs of 40 containers"}, Y: plot.Axis{Label: "delay (ms)", Log: true},
			Series: append(curves(false, worst), published("central", plot.Dots, plot.Point{X: 60, Y: 50}, plot.Point{X: 180, Y: 14_000}), published("HRM", plot.Dots, plot.Point{X: 60, Y: 50}, plot.Point{X: 180, Y: 2500}))})
	}
	if s.rows[len(s.rows)-1].rate == 0 {
		return charts
	}
	return append(charts,
		plot.Chart{Title: "Mean delay of jobs that come one by one", X: rate, Y: plot.Axis{Label: "delay (ms)"}, Series: curves(true, func(f *hrm.Figures) float64 { return f.Mean.Seconds() * 1000 })},
		plot.Chart{Title: "How busy the scheduler is", X: rate, Y: plot.Axis{Label: "jobs that wait for it (%)"}, Series: curves(true, func(f *hrm.Figures) float64 { return 100 * f.Busy })},
		plot.Chart{Title: "Conflicts", X: rate, Y: plot.Axis{Label: "of what is proposed (%)", Max: 100},
			Series: append(distributed, published("up to 45 %", plot.Reference, plot.Point{X: 10, Y: 45}, plot.Point{X: 100, Y: 45}))},
	)
}

// json prints the study for programs.
func (s *hrmStudy) json(costs string) error {
	runs := []document{}
	for i := range s.rows {
		r := &s.rows[i]
		f := &r.figures
		steps := document{}
		for _, one := range r.steps {
			steps[one.step.String()] = document{"number": one.spent.Number, "seconds": one.spent.Total.Seconds(), "most_seconds": one.spent.Most.Seconds()}
		}
		runs = append(runs, document{
			"jobs": r.options.Jobs, "jobs_per_second": r.rate, "style": r.options.Style.String(),
			"delay_seconds":           document{"mean": f.Mean.Seconds(), "p95": f.P95.Seconds(), "most": f.Worst.Seconds()},
			"first_container_seconds": f.First.Seconds(), "job_seconds": f.Last.Seconds(), "busy": f.Busy, "proposed": f.Proposed, "conflicts": f.Conflicts,
			"steps": steps, "digest": fmt.Sprintf("%016x", r.digest),
		})
	}
	o := &s.rows[0].options
	return printJSON(s.call.stdout, document{
		"machines": o.Machines, "cores": o.Cores, "schedds": o.Schedds, "containers": o.Containers, "seed": o.Seed, "costs": costs,
		"message_seconds": o.Delay.Seconds(), "commit_seconds": o.Commit.Seconds(), "runs": runs, "events": s.events, "digest": fmt.Sprintf("%016x", s.digest()),
	})
}
