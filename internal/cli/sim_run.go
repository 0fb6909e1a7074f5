package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/plot"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/sim/pool"
	"github.com/roost-batch/roost/internal/sim/workload"
	"github.com/roost-batch/roost/internal/submit"
	"github.com/roost-batch/roost/internal/swf"
)

func simRun() (branch, []ucli.Flag) {
	return branch{
			name: "run", brief: "run a whole pool", least: 1, most: 1, wants: "a mix of jobs, or a log in the Standard Workload Format; - is the standard input", do: runPool,
		}, append([]ucli.Flag{
			&ucli.StringFlag{Name: "step", Usage: "run: say how the pool stands each `TIME` of its clock"},
			&ucli.BoolFlag{Name: "events", Usage: "run: print a line for each change"},
			untilFlag(), machinesFlag(), processorsFlag(), onceFlag(), seedFlag(),
		}, resultFlags()...)
}

// untilFlag and machinesFlag are of all that runs pools.
func untilFlag() ucli.Flag {
	return &ucli.StringFlag{Name: "until", Usage: "faults: each run ends after this `DURATION`; run: it does, as in 12h or 30d"}
}

func machinesFlag() ucli.Flag {
	return &ucli.IntFlag{Name: "machines", Usage: "faults: at most `N` in a run; run: spread the processors of a log over so many"}
}

// ran is what has come of a pool.
type ran struct {
	name   string
	pool   *pool.Pool
	course *workload.Course
	left   int // jobs of a log that were left out
	done   bool
	once   bool
	took   time.Duration
}

func runPool(c *call, args []string) error {
	until, err := c.length("until", 100*365*24*time.Hour)
	if err != nil {
		return err
	}
	step, err := c.length("step", 0)
	if err != nil {
		return err
	}
	config, left, err := c.poolOf(args[0])
	if err != nil {
		return err
	}
	out := bufio.NewWriter(c.stdout)
	config.Quiet = true
	if c.flag("events") {
		config.Observe = func(s audit.Seen) { fmt.Fprintf(out, "%12s  %v\n", audit.Clock(s.At), s) }
	}
	began := time.Now()
	p, err := pool.New(config)
	if err != nil {
		return problem(roost.Invalid, "%s: %v", printable(args[0]), err)
	}
	r := &ran{name: filepath.Base(printable(args[0])), pool: p, left: left, course: workload.NewCourse(p)}
	r.done = r.play(until, step, out)
	r.took = time.Since(began)
	if err := out.Flush(); err != nil {
		return problem(roost.NoOutput, "%v", err)
	}
	if r.once = c.flag("once"); !r.once {
		config.Observe = nil
		again, err := pool.New(config)
		if err != nil {
			return err
		}
		if again.Finish(until); again.Digest() != p.Digest() || again.Events() != p.Events() {
			return problem(roost.Internal, "%s: run again, it came out differently: %016x and %016x; please tell us, with the file", r.name, p.Digest(), again.Digest())
		}
	}
	if err := c.writeTable(r.table()); err != nil {
		return err
	}
	if err := c.writePicture(r.charts()...); err != nil {
		return err
	}
	if c.json() {
		return r.json(c)
	}
	r.print(c.stdout)
	return nil
}

// length is a flag that is a length of time.
func (c *call) length(flag string, otherwise time.Duration) (time.Duration, error) {
	if c.text(flag) == "" {
		return otherwise, nil
	}
	d, err := roost.ParseDuration(c.text(flag))
	if err != nil || d <= 0 {
		return 0, advise(usage("--%s %s: that is no length of time above 0", flag, c.text(flag)), "as in --"+flag+" 90s, 12h or 30d")
	}
	return d, nil
}

// play runs until all jobs are over, or that instant; it reports whether they are.
func (r *ran) play(until, step time.Duration, out io.Writer) bool {
	p, next := r.pool, step
	for !p.Done() {
		at, ok := p.Peek()
		if !ok || at > until {
			break
		}
		for at > r.course.Next() {
			r.course.Look(p.State())
		}
		for step > 0 && at > next {
			r.line(out, next)
			next += step
		}
		p.Next()
	}
	r.course.Look(p.State())
	return p.Done()
}

// line says in one how the pool stands.
func (r *ran) line(out io.Writer, at time.Duration) {
	s, total := r.pool.State(), r.pool.Total()
	fmt.Fprintf(out, "%12s  waiting %d, running %d, over %d; %.1f %% of the processors used\n", audit.Clock(at), s.Waiting, s.Running, s.Over, 100*s.Used.CPU.Cores()/total.CPU.Cores())
}

// poolOf reads what is to be run: what begins as a log does is one.
func (c *call) poolOf(file string) (config pool.Config, left int, err error) {
	var src []byte
	err = c.unpacked(file, func(_ string, r io.Reader) error {
		buffered := bufio.NewReader(r)
		head, _ := buffered.Peek(1024)
		if !isLog(head) {
			src, err = io.ReadAll(io.LimitReader(buffered, roost.MaxJobFileBytes+1))
			if err == nil && len(src) > roost.MaxJobFileBytes {
				err = fmt.Errorf("%w: it has more than %d bytes, which is the most", roost.Exhausted, roost.MaxJobFileBytes)
			}
			return err
		}
		log, err := swf.Read(buffered)
		if err != nil {
			return err
		}
		processors := int64(c.count("processors"))
		if !c.given("processors") {
			if processors, err = log.Processors(); err != nil {
				return fmt.Errorf("%w; say how many processors the machines have with --processors", err)
			}
		}
		machines := 1
		if c.given("machines") {
			machines = c.count("machines")
		}
		config, left, err = workload.FromLog(log, processors, machines, uint64(c.count("seed")))
		return err
	})
	if err != nil || src == nil {
		return config, left, err
	}
	if c.given("machines") || c.given("processors") {
		return config, 0, usage("%s: it says itself which machines there are; --machines and --processors are for logs", printable(file))
	}
	shown := printable(file)
	if file == "-" {
		shown = "standard input"
	}
	mix, diags := submit.ParseMix(src, submit.Options{Filename: shown, Dir: "/", Home: "/", User: "user", Now: time.Unix(0, 0)})
	if diags.HasErrors() {
		width := c.err.width
		if width == 0 {
			width = 100
		}
		io.WriteString(c.stderr, submit.Format(diags, src, width, c.err.colour))
		return config, 0, exit(submit.ExitKind(diags).ExitCode())
	}
	return workload.FromMix(mix, uint64(c.count("seed"))), 0, nil
}

// isLog reports whether a text begins as a log in the Standard Workload Format does: with a comment of its kind, or with numbers.
func isLog(head []byte) bool {
	first := bytes.TrimLeft(head, " \t\r\n")
	return len(first) > 0 && (first[0] == ';' || first[0] == '-' || first[0] >= '0' && first[0] <= '9')
}

func (r *ran) print(w io.Writer) {
	p, s := r.pool, r.pool.State()
	managers, schedds, machines := p.Nodes()
	all := p.Outcomes()
	fmt.Fprintf(w, "%s: %s on %s, with %s and %s\n\n", r.name, plural(len(all), "job"), plural(len(machines), "machine"), plural(len(schedds), "schedd"), plural(len(managers), "central manager"))
	if r.left > 0 {
		fmt.Fprintf(w, "  left out      %s without a length or a size, or too large for the pool\n", plural(r.left, "job"))
	}
	if refused := p.Refused(); len(refused) > 0 {
		fmt.Fprintf(w, "  refused       %s, as in: %v\n", plural(len(refused), "job"), refused[0])
	}
	fmt.Fprintf(w, "  tasks         %d have come to their end, %d run, %d wait\n", s.Over, s.Running, s.Waiting)
	wait := workload.Summarise(p.Waits())
	fmt.Fprintf(w, "  waits         %s on the mean, median %s, 95 %% up to %s, 99 %% up to %s, the longest %s\n", moment(wait.Mean), moment(wait.Median), moment(wait.P95), moment(wait.P99), moment(wait.Most))
	fmt.Fprintf(w, "  utilisation   %.1f %% of the processors in %s\n", 100*r.utilisation(), moment(p.Now()))
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
	return printJSON(c.stdout, document{
		"file": c.args[1], "seed": uint64(c.count("seed")), "jobs": len(p.Outcomes()), "left_out": r.left, "refused": refused, "machines": len(machines), "schedds": len(schedds),
		"managers": len(managers), "tasks": document{"over": s.Over, "running": s.Running, "waiting": s.Waiting}, "finished": r.done,
		"wait_seconds": document{"mean": wait.Mean.Seconds(), "median": wait.Median.Seconds(), "p95": wait.P95.Seconds(), "p99": wait.P99.Seconds(), "most": wait.Most.Seconds()},
		"utilisation":  r.utilisation(), "makespan_seconds": p.Now().Seconds(), "events": p.Events(), "digest": fmt.Sprintf("%016x", p.Digest()), "took_seconds": r.took.Seconds(),
	})
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
