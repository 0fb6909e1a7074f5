package sim

import (
	"fmt"
	"strconv"
	"time"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/plot"
	"github.com/roost-batch/roost/internal/sim/whatif"
	"github.com/roost-batch/roost/negotiator/cellstate"
)

// maxInstants is how many rows the table of a cell that was played on has at most.
const maxInstants = 1200

// whatifPoint is how two cells stand at the same moment, of which one was changed.
type whatifPoint struct {
	at            int64 // seconds from the checkpoint on
	before, after whatif.CellSample
}

// joinCourses joins two courses. Where too much happens it is how they stand at the ends
// of spans of equal length.
func joinCourses(before, after []whatif.CellSample) (all []whatifPoint) {
	end := int64(0)
	for _, course := range [][]whatif.CellSample{before, after} {
		if n := len(course); n > 0 {
			end = max(end, course[n-1].At)
		}
	}
	length := end/maxInstants + 1
	var now whatifPoint
	for len(before)+len(after) > 0 {
		if len(after) == 0 || len(before) > 0 && before[0].At <= after[0].At {
			now.at, now.before, before = before[0].At, before[0], before[1:]
		} else {
			now.at, now.after, after = after[0].At, after[0], after[1:]
		}
		if n := len(all); n > 0 && (all[n-1].at == now.at || length > 1 && all[n-1].at/length == now.at/length) {
			all[n-1] = now
		} else {
			all = append(all, now)
		}
	}
	return all
}

// whatifTable is a row for each instant at which something changes.
func whatifTable(a *whatif.PlanComparison) (head []string, rows [][]string) {
	for _, now := range joinCourses(a.Before.Samples, a.After.Samples) {
		row := []string{strconv.FormatInt(now.at, 10)}
		for _, one := range []whatif.CellSample{now.before, now.after} {
			row = append(row, strconv.Itoa(one.Waiting), strconv.Itoa(one.Started), strconv.Itoa(one.Evicted))
		}
		rows = append(rows, row)
	}
	return []string{"at_seconds", "before_waiting_tasks", "before_started_tasks", "before_evicted_tasks",
		"after_waiting_tasks", "after_started_tasks", "after_evicted_tasks"}, rows
}

// whatifCharts are how many tasks wait with and without a change, and when the most moved
// requests end waiting.
func whatifCharts(p *cellstate.CellCheckpoint, a *whatif.PlanComparison, length time.Duration) []plot.Chart {
	both := joinCourses(a.Before.Samples, a.After.Samples)
	end := int64(60)
	if n := len(both); n > 0 {
		end = min(max(end, both[n-1].at+both[n-1].at/20), int64(length/time.Second))
	}
	axis, unit := timeAxis(end)
	line := func(name string, of func(whatifPoint) whatif.CellSample) plot.ChartSeries {
		s := plot.ChartSeries{Name: name, Kind: plot.Step}
		for _, now := range both {
			s.Points = append(s.Points, plot.DataPoint{X: float64(now.at) / unit, Y: float64(of(now).Waiting)})
		}
		if n := len(s.Points); n > 0 {
			s.Points = append(s.Points, plot.DataPoint{X: float64(end) / unit, Y: s.Points[n-1].Y})
		}
		return s
	}
	charts := []plot.Chart{{Title: "Queue", X: axis, Y: plot.ChartAxis{Label: "tasks that wait"},
		Series: []plot.ChartSeries{
			line("before", func(s whatifPoint) whatif.CellSample {
				return s.before
			}), line("after", func(s whatifPoint) whatif.CellSample { return s.after }),
		}}}
	if len(a.StartChanges) == 0 {
		return charts
	}
	until := func(t time.Time) float64 {
		if t.IsZero() {
			return length.Seconds() / unit
		}
		return t.Sub(time.Unix(p.Now.Unix(), 0)).Seconds() / unit
	}
	moves := plot.Chart{Title: "Until the last task starts; never is as long as was looked",
		Y: plot.ChartAxis{Label: "time (" + unitName(unit) + ")"}}
	before, after := plot.ChartSeries{Name: "before", Kind: plot.Bars}, plot.ChartSeries{Name: "after", Kind: plot.Bars}
	for i, m := range a.StartChanges[:min(len(a.StartChanges), maxShown)] {
		moves.X.Names = append(moves.X.Names, movedJobs(m))
		before.Points = append(before.Points, plot.DataPoint{X: float64(i), Y: until(m.Before)})
		after.Points = append(after.Points, plot.DataPoint{X: float64(i), Y: until(m.After)})
	}
	moves.Series = []plot.ChartSeries{before, after}
	return append(charts, moves)
}

// movedJobs names the jobs that start at another time.
func movedJobs(m whatif.StartChange) string {
	switch len(m.Jobs) {
	case 0:
		return fmt.Sprintf("request %d of %s", m.Key.ID, m.Key.Schedd)
	case 1:
		return m.Jobs[0]
	}
	return fmt.Sprintf("%s and %d more", m.Jobs[0], len(m.Jobs)-1)
}

func whatifJSON(c *frame.Invocation, p *cellstate.CellCheckpoint, a *whatif.PlanComparison) error {
	course := func(r *whatif.Trajectory) frame.JSONDocument {
		return frame.JSONDocument{
			"waiting": r.Waiting, "started": r.Started, "started_within_an_hour": r.StartedInHour, "evicted": r.Evicted,
			"mean_wait_seconds": r.MeanWait, "last_start_seconds": secondsUntil(p, r.LastStart),
			"endless": r.EndUnknown,
		}
	}
	evicted, moved, drained, quotas := []frame.JSONDocument{}, []frame.JSONDocument{}, []frame.JSONDocument{},
		[]frame.JSONDocument{}
	for _, e := range a.Evictions {
		evicted = append(evicted, frame.JSONDocument{"task": e.Claim.Job, "owner": e.Claim.Submitter.Owner,
			"group": e.Claim.Submitter.Group, "band": e.Claim.Band.String(), "machine": e.Machine, "why": e.Reason})
	}
	for _, m := range a.StartChanges {
		moved = append(moved, frame.JSONDocument{
			"schedd": m.Key.Schedd, "request": m.Key.ID, "jobs": m.Jobs, "owner": m.Submitter.Owner,
			"group": m.Submitter.Group, "tasks": m.Tasks,
			"before_seconds": secondsUntil(p, m.Before), "after_seconds": secondsUntil(p, m.After),
		})
	}
	for _, d := range a.Drained {
		drained = append(drained, frame.JSONDocument{"node": d.Node, "runs": d.Running, "unknown": d.EndUnknown,
			"over_seconds": secondsUntil(p, d.LastEnd)})
	}
	for _, q := range a.Quotas {
		quotas = append(quotas, frame.JSONDocument{"whose": q.Subject, "band": q.Band, "asks": q.Demand,
			"most": q.Limit,
			"over": q.Exceeded})
	}
	return frame.PrintJSON(c.Stdout, frame.JSONDocument{
		"at": p.Now.Unix(), "before": course(&a.Before), "after": course(&a.After), "evicts": evicted, "moved": moved,
		"drained": drained, "quotas": quotas, "allowed": append([]string{}, a.AdmittedJobs...),
		"digest": fmt.Sprintf("%016x", a.Digest),
	})
}
