package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/plot"
	"github.com/roost-batch/roost/internal/sim/workload"
)

// reportRun writes and prints what has come of a pool.
func reportRun(c *frame.Invocation, r *simResult) error {
	head, rows := r.table()
	if err := writeTable(c, head, rows); err != nil {
		return err
	}
	if err := writeCharts(c, r.charts()...); err != nil {
		return err
	}
	if c.WantsJSON() {
		return r.json(c)
	}
	r.print(c)
	return nil
}

func (r *simResult) print(c *frame.Invocation) {
	w, p, s := c.Stdout, r.pool, r.pool.Sample()
	managers, schedds, machines := p.Nodes()
	all := p.Outcomes()
	fmt.Fprintf(w, "%s: %s on %s, with %s and %s\n", r.name, document.Plural(len(all), "job"),
		document.Plural(len(machines), "machine"),
		document.Plural(len(schedds), "schedd"), document.Plural(len(managers), "central manager"))
	if !r.checkpointTime.IsZero() {
		fmt.Fprintf(w, "from %s on\n", r.checkpointTime.In(c.Now().Location()).Format("2006-01-02 15:04:05"))
	}
	fmt.Fprintln(w)
	if r.skippedJobs > 0 {
		fmt.Fprintf(w, "  left out      %s without a length or a size, or too large for the pool\n",
			document.Plural(r.skippedJobs, "job"))
	}
	if refused := p.Refused(); len(refused) > 0 {
		fmt.Fprintf(w, "  refused       %s, as in: %v\n", document.Plural(len(refused), "job"), refused[0])
	}
	fmt.Fprintf(w, "  tasks         %d have come to their end, %d run, %d wait\n", s.Ended, s.Running, s.Waiting)
	if r.isStuck {
		fmt.Fprintf(w, "  stuck         nothing has begun or ended for %s, and nothing that would change that "+
			"is to come\n", durationText(stuckTimeout(p)))
	}
	wait := workload.SummarizeWaits(p.StartWaits())
	fmt.Fprintf(w, "  waits         %s on the mean, median %s, 95 %% up to %s, 99 %% up to %s, the longest %s\n",
		durationText(wait.Mean), durationText(wait.Median), durationText(wait.P95), durationText(wait.P99),
		durationText(wait.Max))
	fmt.Fprintf(w, "  utilisation   %.1f %% of the processors in %s\n", 100*r.cpuUtilisation(), durationText(p.Now()))
	if l, ok := p.OwnerStats(); ok {
		fmt.Fprintf(w, "  owners        came %s; for them %s stood still, and %s had to leave\n",
			document.Plural(l.Visits, "time"), document.Plural(l.Suspended, "task"), document.Plural(l.Vacated, "task"))
	}
	if r.watch != nil {
		r.watch.print(w, r)
	}
	c.PrintList("Not played, or not as it is:", r.notes)
	times := "run twice, digest %016x both times\n"
	if r.runOnce {
		times = "run once, digest %016x\n"
	}
	fmt.Fprintf(w, "\n%d events, %.0f a second; "+times, p.Events(), float64(p.Events())/r.duration.Seconds(),
		p.Digest())
}

// cpuUtilisation is how much of the processor time was used by what has ended.
func (r *simResult) cpuUtilisation() float64 {
	if r.pool.Now() == 0 {
		return 0
	}
	return r.pool.CoreSeconds() / (r.pool.Total().CPU.Cores() * r.pool.Now().Seconds())
}

// durationText is a length of time for people, who care for parts of a second where it is
// short.
func durationText(d time.Duration) string {
	if d < 10*time.Second {
		return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) + "s"
	}
	return document.SpanText(d)
}

func (r *simResult) json(c *frame.Invocation) error {
	p, s, wait := r.pool, r.pool.Sample(), workload.SummarizeWaits(r.pool.StartWaits())
	managers, schedds, machines := p.Nodes()
	refused := []string{}
	for _, err := range p.Refused() {
		refused = append(refused, err.Error())
	}
	doc := frame.JSONDocument{
		"file": c.Args[1], "seed": uint64(c.CountFlag("seed")), "jobs": len(p.Outcomes()), "left_out": r.skippedJobs,
		"not_played": append([]string{}, r.notes...), "refused": refused, "machines": len(machines),
		"schedds":  len(schedds),
		"managers": len(managers), "tasks": frame.JSONDocument{"over": s.Ended, "running": s.Running,
			"waiting": s.Waiting},
		"finished": p.AllEnded(), "stuck": r.isStuck,
		"wait_seconds": frame.JSONDocument{"mean": wait.Mean.Seconds(), "median": wait.Median.Seconds(),
			"p95": wait.P95.Seconds(), "p99": wait.P99.Seconds(), "most": wait.Max.Seconds()},
		"utilisation": r.cpuUtilisation(), "makespan_seconds": p.Now().Seconds(), "events": p.Events(),
		"digest": fmt.Sprintf("%016x", p.Digest()), "took_seconds": r.duration.Seconds(),
	}
	if l, ok := p.OwnerStats(); ok {
		doc["owners"] = frame.JSONDocument{"visits": l.Visits, "stood_still": l.Suspended, "left": l.Vacated}
	}
	if r.watch != nil {
		r.watch.addTo(doc, r)
	}
	return frame.PrintJSON(c.Stdout, doc)
}

// table is the course of the run, an instant a row.
func (r *simResult) table() (head []string, rows [][]string) {
	head = []string{"at_seconds", "waiting_tasks", "running_tasks", "over_tasks", "used_cores"}
	for _, who := range r.history.Owners {
		head = append(head, strings.ReplaceAll(who, " ", "_")+"_cores")
	}
	for _, i := range r.history.Samples {
		row := []string{decimalText(i.At.Seconds()), strconv.Itoa(i.Waiting), strconv.Itoa(i.Running),
			strconv.Itoa(i.Over), decimalText(i.Used.Cores())}
		for _, v := range i.By {
			row = append(row, decimalText(v.Cores()))
		}
		rows = append(rows, row)
	}
	return head, rows
}

// charts are the pictures of a run: utilisation, queue, shares over time, and how the
// waits are spread.
func (r *simResult) charts() []plot.Chart {
	unit, seconds := "minutes", 60.
	switch now := r.pool.Now(); {
	case now > 4*24*time.Hour:
		unit, seconds = "days", 86400
	case now > 4*time.Hour:
		unit, seconds = "hours", 3600
	}
	axis := plot.ChartAxis{Label: "time (" + unit + ")"}
	over := func(value func(i *workload.PoolSample) float64) (points []plot.DataPoint) {
		for k := range r.history.Samples {
			i := &r.history.Samples[k]
			points = append(points, plot.DataPoint{X: i.At.Seconds() / seconds, Y: value(i)})
		}
		return points
	}
	of := 100 / r.pool.Total().CPU.Cores()
	shares := plot.Chart{Title: "Shares", X: axis, Y: plot.ChartAxis{Label: "of the processors (%)"}}
	for k, who := range r.history.Owners {
		if k < simUsers {
			shares.Series = append(shares.Series,
				plot.ChartSeries{Name: who, Kind: plot.Step, Points: over(func(i *workload.PoolSample) float64 {
					return i.By[k].Cores() * of
				})})
		}
	}
	waits := []float64{}
	for _, d := range r.pool.StartWaits() {
		waits = append(waits, max(d.Seconds(), 0.001))
	}
	return []plot.Chart{
		{Title: "Utilisation", X: axis, Y: plot.ChartAxis{Label: "of the processors (%)", Max: 100},
			Series: []plot.ChartSeries{
				{Name: "used", Kind: plot.Step, Points: over(func(i *workload.PoolSample) float64 {
					return i.Used.Cores() * of
				})},
			}},
		{Title: "Queue", X: axis, Y: plot.ChartAxis{Label: "tasks"}, Series: []plot.ChartSeries{
			{Name: "waiting", Kind: plot.Step, Points: over(func(i *workload.PoolSample) float64 {
				return float64(i.Waiting)
			})},
			{Name: "running", Kind: plot.Step, Points: over(func(i *workload.PoolSample) float64 {
				return float64(i.Running)
			})},
		}},
		shares,
		{Title: "Waits", X: plot.ChartAxis{Label: "wait (s)", Log: true},
			Y: plot.ChartAxis{Label: "of the tasks (%)", Max: 100}, Series: []plot.ChartSeries{
				{Name: "no longer than", Kind: plot.Step, Points: plot.CDF(waits)},
			}},
	}
}
