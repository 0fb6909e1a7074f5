package cli

import (
	"fmt"
	"strconv"
	"time"

	"github.com/roost-batch/roost/internal/plot"
	"github.com/roost-batch/roost/internal/sim/live"
	"github.com/roost-batch/roost/negotiator/picture"
)

// liveInstants is how many rows the table of a cell that was played on has at most.
const liveInstants = 1200

// standing is how two cells stand at the same moment, of which one was changed.
type standing struct {
	at            int64 // seconds from the checkpoint on
	before, after live.Instant
}

// sideBySide joins two courses. Where too much happens it is how they stand at the ends of spans of equal length.
func sideBySide(before, after []live.Instant) (all []standing) {
	end := int64(0)
	for _, course := range [][]live.Instant{before, after} {
		if n := len(course); n > 0 {
			end = max(end, course[n-1].At)
		}
	}
	length := end/liveInstants + 1
	var now standing
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
func whatifTable(a *live.Comparison) (head []string, rows [][]string) {
	for _, now := range sideBySide(a.Before.Instants, a.After.Instants) {
		row := []string{strconv.FormatInt(now.at, 10)}
		for _, one := range []live.Instant{now.before, now.after} {
			row = append(row, strconv.Itoa(one.Waiting), strconv.Itoa(one.Started), strconv.Itoa(one.Evicted))
		}
		rows = append(rows, row)
	}
	return []string{"at_seconds", "before_waiting_tasks", "before_started_tasks", "before_evicted_tasks", "after_waiting_tasks", "after_started_tasks", "after_evicted_tasks"}, rows
}

// whatifCharts are how many tasks wait with and without a change, and of those requests that it moves most until when their last tasks wait.
func whatifCharts(p *picture.Checkpoint, a *live.Comparison, length time.Duration) []plot.Chart {
	both := sideBySide(a.Before.Instants, a.After.Instants)
	end := int64(60)
	if n := len(both); n > 0 {
		end = min(max(end, both[n-1].at+both[n-1].at/20), int64(length/time.Second))
	}
	axis, unit := timeSince(end)
	line := func(name string, of func(standing) live.Instant) plot.Series {
		s := plot.Series{Name: name, Kind: plot.Step}
		for _, now := range both {
			s.Points = append(s.Points, plot.Point{X: float64(now.at) / unit, Y: float64(of(now).Waiting)})
		}
		if n := len(s.Points); n > 0 {
			s.Points = append(s.Points, plot.Point{X: float64(end) / unit, Y: s.Points[n-1].Y})
		}
		return s
	}
	charts := []plot.Chart{{Title: "Queue", X: axis, Y: plot.Axis{Label: "tasks that wait"}, Series: []plot.Series{
		line("before", func(s standing) live.Instant { return s.before }), line("after", func(s standing) live.Instant { return s.after }),
	}}}
	if len(a.Moved) == 0 {
		return charts
	}
	until := func(t time.Time) float64 {
		if t.IsZero() {
			return length.Seconds() / unit
		}
		return t.Sub(time.Unix(p.Now.Unix(), 0)).Seconds() / unit
	}
	moves := plot.Chart{Title: "Until the last task starts; never is as long as was looked", Y: plot.Axis{Label: "time (" + unitName(unit) + ")"}}
	before, after := plot.Series{Name: "before", Kind: plot.Bars}, plot.Series{Name: "after", Kind: plot.Bars}
	for i, m := range a.Moved[:min(len(a.Moved), mostShown)] {
		moves.X.Names = append(moves.X.Names, moved(m))
		before.Points = append(before.Points, plot.Point{X: float64(i), Y: until(m.Before)})
		after.Points = append(after.Points, plot.Point{X: float64(i), Y: until(m.After)})
	}
	moves.Series = []plot.Series{before, after}
	return append(charts, moves)
}

// moved names the jobs that start at another time.
func moved(m live.Move) string {
	switch len(m.Jobs) {
	case 0:
		return fmt.Sprintf("request %d of %s", m.Key.ID, m.Key.Schedd)
	case 1:
		return m.Jobs[0]
	}
	return fmt.Sprintf("%s and %d more", m.Jobs[0], len(m.Jobs)-1)
}

func (c *call) whatifJSON(p *picture.Checkpoint, a *live.Comparison) error {
	course := func(r *live.Course) document {
		return document{
			"waiting": r.Waits, "started": r.Started, "started_within_an_hour": r.Within, "evicted": r.Evicted, "mean_wait_seconds": r.MeanWait, "last_start_seconds": secondsTo(p, r.Done),
			"endless": r.Endless,
		}
	}
	evicted, moved, drained, quotas := []document{}, []document{}, []document{}, []document{}
	for _, e := range a.Evictions {
		evicted = append(evicted, document{"task": e.Claim.Job, "owner": e.Claim.Submitter.Owner, "group": e.Claim.Submitter.Group, "band": e.Claim.Band.String(), "machine": e.Machine, "why": e.Why})
	}
	for _, m := range a.Moved {
		moved = append(moved, document{
			"schedd": m.Key.Schedd, "request": m.Key.ID, "jobs": m.Jobs, "owner": m.Submitter.Owner, "group": m.Submitter.Group, "tasks": m.Tasks,
			"before_seconds": secondsTo(p, m.Before), "after_seconds": secondsTo(p, m.After),
		})
	}
	for _, d := range a.Drained {
		drained = append(drained, document{"node": d.Node, "runs": d.Runs, "unknown": d.Unknown, "over_seconds": secondsTo(p, d.Over)})
	}
	for _, q := range a.Quotas {
		quotas = append(quotas, document{"whose": q.Whose, "band": q.Band, "asks": q.Asks, "most": q.Most, "over": q.Over})
	}
	return printJSON(c.stdout, document{
		"at": p.Now.Unix(), "before": course(&a.Before), "after": course(&a.After), "evicts": evicted, "moved": moved, "drained": drained, "quotas": quotas, "allowed": append([]string{}, a.Allowed...),
		"digest": fmt.Sprintf("%016x", a.Digest),
	})
}
