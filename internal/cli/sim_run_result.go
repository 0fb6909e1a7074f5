package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/plot"
	"github.com/roost-batch/roost/internal/sim/workload"
)

// tellRun writes and prints what has come of a pool.
func (c *call) tellRun(r *ran) error {
	if err := c.writeTable(r.table()); err != nil {
		return err
	}
	if err := c.writePicture(r.charts()...); err != nil {
		return err
	}
	if c.json() {
		return r.json(c)
	}
	r.print(c)
	return nil
}

func (r *ran) print(c *call) {
	w, p, s := c.stdout, r.pool, r.pool.State()
	managers, schedds, machines := p.Nodes()
	all := p.Outcomes()
	fmt.Fprintf(w, "%s: %s on %s, with %s and %s\n", r.name, plural(len(all), "job"), plural(len(machines), "machine"), plural(len(schedds), "schedd"), plural(len(managers), "central manager"))
	if !r.asOf.IsZero() {
		fmt.Fprintf(w, "from %s on\n", r.asOf.In(c.now().Location()).Format("2006-01-02 15:04:05"))
	}
	fmt.Fprintln(w)
	if r.left > 0 {
		fmt.Fprintf(w, "  left out      %s without a length or a size, or too large for the pool\n", plural(r.left, "job"))
	}
	if refused := p.Refused(); len(refused) > 0 {
		fmt.Fprintf(w, "  refused       %s, as in: %v\n", plural(len(refused), "job"), refused[0])
	}
	fmt.Fprintf(w, "  tasks         %d have come to their end, %d run, %d wait\n", s.Over, s.Running, s.Waiting)
	if r.stuck {
		fmt.Fprintf(w, "  stuck         nothing has begun or ended for %s, and nothing that would change that is to come\n", moment(patience(p)))
	}
	wait := workload.Summarise(p.Waits())
	fmt.Fprintf(w, "  waits         %s on the mean, median %s, 95 %% up to %s, 99 %% up to %s, the longest %s\n", moment(wait.Mean), moment(wait.Median), moment(wait.P95), moment(wait.P99), moment(wait.Most))
	fmt.Fprintf(w, "  utilisation   %.1f %% of the processors in %s\n", 100*r.utilisation(), moment(p.Now()))
	if l, ok := p.Lending(); ok {
		fmt.Fprintf(w, "  owners        came %s; for them %s stood still, and %s had to leave\n", plural(l.Visits, "time"), plural(l.Stood, "task"), plural(l.Left, "task"))
	}
	c.list("Not played, or not as it is:", r.notes)
	times := "run twice, digest %016x both times\n"
	if r.once {
		times = "run once, digest %016x\n"
	}
	fmt.Fprintf(w, "\n%d events, %.0f a second; "+times, p.Events(), float64(p.Events())/r.took.Seconds(), p.Digest())
}

// utilisation is how much of the processor time was used by what has ended.
func (r *ran) utilisation() float64 {
	if r.pool.Now() == 0 {
		return 0
	}
	return r.pool.Spent() / (r.pool.Total().CPU.Cores() * r.pool.Now().Seconds())
}

// moment is a length of time for people, who care for parts of a second where it is short.
func moment(d time.Duration) string {
	if d < 10*time.Second {
		return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) + "s"
	}
	return span(d)
}

func (r *ran) json(c *call) error {
	p, s, wait := r.pool, r.pool.State(), workload.Summarise(r.pool.Waits())
	managers, schedds, machines := p.Nodes()
	refused := []string{}
	for _, err := range p.Refused() {
		refused = append(refused, err.Error())
	}
	doc := document{
		"file": c.args[1], "seed": uint64(c.count("seed")), "jobs": len(p.Outcomes()), "left_out": r.left, "not_played": append([]string{}, r.notes...), "refused": refused, "machines": len(machines), "schedds": len(schedds),
		"managers": len(managers), "tasks": document{"over": s.Over, "running": s.Running, "waiting": s.Waiting}, "finished": p.Done(), "stuck": r.stuck,
		"wait_seconds": document{"mean": wait.Mean.Seconds(), "median": wait.Median.Seconds(), "p95": wait.P95.Seconds(), "p99": wait.P99.Seconds(), "most": wait.Most.Seconds()},
		"utilisation":  r.utilisation(), "makespan_seconds": p.Now().Seconds(), "events": p.Events(), "digest": fmt.Sprintf("%016x", p.Digest()), "took_seconds": r.took.Seconds(),
	}
	if l, ok := p.Lending(); ok {
		doc["owners"] = document{"visits": l.Visits, "stood_still": l.Stood, "left": l.Left}
	}
	return printJSON(c.stdout, doc)
}

// table is the course of the run, an instant a row.
func (r *ran) table() (head []string, rows [][]string) {
	head = []string{"at_seconds", "waiting_tasks", "running_tasks", "over_tasks", "used_cores"}
	for _, who := range r.course.Owners {
		head = append(head, strings.ReplaceAll(who, " ", "_")+"_cores")
	}
	for _, i := range r.course.Instants {
		row := []string{thousandths(i.At.Seconds()), strconv.Itoa(i.Waiting), strconv.Itoa(i.Running), strconv.Itoa(i.Over), thousandths(i.Used.Cores())}
		for _, v := range i.By {
			row = append(row, thousandths(v.Cores()))
		}
		rows = append(rows, row)
	}
	return head, rows
}

// charts are the pictures of a run: utilisation, queue, shares over time, and how the waits are spread.
func (r *ran) charts() []plot.Chart {
	unit, seconds := "minutes", 60.
	switch now := r.pool.Now(); {
	case now > 4*24*time.Hour:
		unit, seconds = "days", 86400
	case now > 4*time.Hour:
		unit, seconds = "hours", 3600
	}
	axis := plot.Axis{Label: "time (" + unit + ")"}
	over := func(value func(i *workload.Instant) float64) (points []plot.Point) {
		for k := range r.course.Instants {
			i := &r.course.Instants[k]
			points = append(points, plot.Point{X: i.At.Seconds() / seconds, Y: value(i)})
		}
		return points
	}
	of := 100 / r.pool.Total().CPU.Cores()
	shares := plot.Chart{Title: "Shares", X: axis, Y: plot.Axis{Label: "of the processors (%)"}}
	for k, who := range r.course.Owners {
		if k < simUsers {
			shares.Series = append(shares.Series, plot.Series{Name: who, Kind: plot.Step, Points: over(func(i *workload.Instant) float64 { return i.By[k].Cores() * of })})
		}
	}
	waits := []float64{}
	for _, d := range r.pool.Waits() {
		waits = append(waits, max(d.Seconds(), 0.001))
	}
	return []plot.Chart{
		{Title: "Utilisation", X: axis, Y: plot.Axis{Label: "of the processors (%)", Max: 100}, Series: []plot.Series{
			{Name: "used", Kind: plot.Step, Points: over(func(i *workload.Instant) float64 { return i.Used.Cores() * of })},
		}},
		{Title: "Queue", X: axis, Y: plot.Axis{Label: "tasks"}, Series: []plot.Series{
			{Name: "waiting", Kind: plot.Step, Points: over(func(i *workload.Instant) float64 { return float64(i.Waiting) })},
			{Name: "running", Kind: plot.Step, Points: over(func(i *workload.Instant) float64 { return float64(i.Running) })},
		}},
		shares,
		{Title: "Waits", X: plot.Axis{Label: "wait (s)", Log: true}, Y: plot.Axis{Label: "of the tasks (%)", Max: 100}, Series: []plot.Series{
			{Name: "no longer than", Kind: plot.Step, Points: plot.CDF(waits)},
		}},
	}
}
