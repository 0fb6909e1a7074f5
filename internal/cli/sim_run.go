package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/sim/pool"
	"github.com/roost-batch/roost/internal/sim/workload"
)

func simRun() (branch, []ucli.Flag) {
	return branch{
			name: "run", brief: "run a whole pool", least: 1, most: 2, wants: "a checkpoint of a cell, a mix of jobs, a log in the Standard Workload Format, or both lists of the openb trace; - is the standard input", do: runPool,
		}, append([]ucli.Flag{
			&ucli.StringFlag{Name: "step", Usage: "run: say how the pool stands each `TIME` of its clock"},
			&ucli.BoolFlag{Name: "events", Usage: "run: print a line for each change"},
			&ucli.BoolFlag{Name: "pause", Usage: "run: stop before anything happens, and do what the standard input says, a command a line: step, until, run, show, jobs, machines, quit, help"},
			untilFlag(), machinesFlag(), processorsFlag(), onceFlag(), seedFlag(),
		}, resultFlags()...)
}

// untilFlag and machinesFlag are of all that runs pools.
func untilFlag() ucli.Flag {
	return &ucli.StringFlag{Name: "until", Usage: "faults: each run ends after this `DURATION`; run: it does, as in 12h or 30d"}
}

func machinesFlag() ucli.Flag {
	return &ucli.IntFlag{Name: "machines", Usage: "faults: at most `N` in a run; run: spread the processors of a log over so many, or take the first so many of a trace"}
}

// simulated is a pool that is to be run, and what there is to say of it.
type simulated struct {
	config pool.Config
	left   int       // jobs of a log that were left out
	notes  []string  // what of a cell is not played
	asOf   time.Time // the moment of a checkpoint; zero: it is of none
}

// ran is what has come of a pool.
type ran struct {
	simulated
	name   string
	pool   *pool.Pool
	course *workload.Course

	until, step time.Duration
	next        time.Duration // when it is to be said again how the pool stands

	stuck bool // nothing more is to be expected, and not all jobs are over
	once  bool
	took  time.Duration
}

func runPool(c *call, args []string) error {
	until, err := c.length("until", pool.ForEver)
	if err != nil {
		return err
	}
	step, err := c.length("step", 0)
	if err != nil {
		return err
	}
	if c.flag("pause") {
		if slices.Contains(args, "-") {
			return usage("--pause reads commands from the standard input, which cannot be the file, too")
		} else if c.json() {
			return usage("--pause is for people, and --json for programs")
		}
	}
	from, err := c.poolOf(args)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(c.stdout)
	from.config.Quiet = true
	eye := &onlooker{out: out, all: c.flag("events")}
	if eye.all || c.flag("pause") {
		from.config.Observe = eye.see
	}
	began := time.Now()
	p, err := pool.New(from.config)
	if err != nil {
		return problem(roost.Invalid, "%s: %v", printable(args[0]), err)
	}
	r := &ran{simulated: from, name: filepath.Base(printable(args[len(args)-1])), pool: p, course: workload.NewCourse(p)}
	r.until, r.step, r.next = until, step, step
	bad := 0
	if c.flag("pause") {
		x := &paused{ran: r, c: c, eye: eye, out: out}
		err = x.read()
		bad = x.bad
		r.course.Look(p.State())
	} else {
		r.stuck = r.play(until, out, nil)
	}
	r.took = time.Since(began)
	if err := errors.Join(err, out.Flush()); err != nil {
		return problem(roost.NoOutput, "%v", err)
	}
	if r.once = c.flag("once") || c.flag("pause"); !r.once {
		if err := r.again(until); err != nil {
			return err
		}
	}
	if err := c.tellRun(r); err != nil || bad == 0 {
		return err
	}
	return usage("%s made no sense", plural(bad, "command"))
}

// again plays it once more, and says if that comes out differently.
func (r *ran) again(until time.Duration) error {
	config := r.config
	config.Observe = nil
	again, err := pool.New(config)
	if err != nil {
		return err
	}
	pace(again, until, until == pool.ForEver, func(time.Duration) bool { return true })
	if p := r.pool; again.Digest() != p.Digest() || again.Events() != p.Events() {
		return problem(roost.Internal, "%s: run again, it came out differently: %016x and %016x; please tell us, with the file", r.name, p.Digest(), again.Digest())
	}
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

// stuckAfter is how long nothing begins or ends where nothing more is to be expected: what is displaced an hour is bounded, and the next hour may bring more.
const stuckAfter = 2 * time.Hour

// hauntedAfter is the same where owners come and go: what they do in a week may be something else on each of its days.
const hauntedAfter = 8 * 24 * time.Hour

// patience is for how long nothing has begun or ended in a pool from which nothing more is expected.
func patience(p *pool.Pool) time.Duration {
	if p.Haunted() {
		return hauntedAfter
	}
	return stuckAfter
}

// pace runs until all jobs are over, until an instant, or, if it may give up, until nothing more is to be expected, which it reports. Before each event it asks whether
// to go on, and says when the event is.
func pace(p *pool.Pool, until time.Duration, mayGiveUp bool, goOn func(at time.Duration) bool) (stuck bool) {
	for !p.Done() {
		at, ok := p.Peek()
		if !ok || at > until {
			return false
		}
		if mayGiveUp && p.Stuck(patience(p)) {
			return true
		}
		if !goOn(at) {
			return false
		}
		p.Next()
	}
	return false
}

// play goes on until an instant, or until it is enough, and says how the pool stands each step.
func (r *ran) play(until time.Duration, out io.Writer, enough func() bool) (stuck bool) {
	stuck = pace(r.pool, until, until == pool.ForEver, func(at time.Duration) bool {
		if enough != nil && enough() {
			return false
		}
		for at > r.course.Next() {
			r.course.Look(r.pool.State())
		}
		for r.step > 0 && at > r.next {
			r.line(out, r.next)
			r.next += r.step
		}
		return true
	})
	if enough == nil {
		r.course.Look(r.pool.State())
	}
	return stuck
}

// line says in one how the pool stands.
func (r *ran) line(out io.Writer, at time.Duration) {
	s, total := r.pool.State(), r.pool.Total()
	fmt.Fprintf(out, "%12s  waiting %d, running %d, over %d; %.1f %% of the processors used\n", audit.Clock(at), s.Waiting, s.Running, s.Over, 100*s.Used.CPU.Cores()/total.CPU.Cores())
}
