package cli

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
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
	stuck  bool // nothing more is to be expected, and not all jobs are over
	once   bool
	took   time.Duration
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
	from, err := c.poolOf(args)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(c.stdout)
	from.config.Quiet = true
	if c.flag("events") {
		from.config.Observe = func(s audit.Seen) { fmt.Fprintf(out, "%12s  %v\n", audit.Clock(s.At), s) }
	}
	began := time.Now()
	p, err := pool.New(from.config)
	if err != nil {
		return problem(roost.Invalid, "%s: %v", printable(args[0]), err)
	}
	r := &ran{simulated: from, name: filepath.Base(printable(args[len(args)-1])), pool: p, course: workload.NewCourse(p)}
	r.stuck = r.play(until, step, out)
	r.took = time.Since(began)
	if err := out.Flush(); err != nil {
		return problem(roost.NoOutput, "%v", err)
	}
	if r.once = c.flag("once"); !r.once {
		if err := r.again(until); err != nil {
			return err
		}
	}
	return c.tellRun(r)
}

// again plays it once more, and says if that comes out differently.
func (r *ran) again(until time.Duration) error {
	config := r.config
	config.Observe = nil
	again, err := pool.New(config)
	if err != nil {
		return err
	}
	pace(again, until, func(time.Duration) {})
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

// pace runs until all jobs are over, until an instant, or, where that is not said, until nothing more is to be expected, which it reports. It says what is to
// come before each event.
func pace(p *pool.Pool, until time.Duration, before func(at time.Duration)) (stuck bool) {
	for !p.Done() {
		at, ok := p.Peek()
		if !ok || at > until {
			return false
		}
		if until == pool.ForEver && p.Stuck(stuckAfter) {
			return true
		}
		before(at)
		p.Next()
	}
	return false
}

// play runs it once, and says how the pool stands each step.
func (r *ran) play(until, step time.Duration, out io.Writer) (stuck bool) {
	next := step
	stuck = pace(r.pool, until, func(at time.Duration) {
		for at > r.course.Next() {
			r.course.Look(r.pool.State())
		}
		for step > 0 && at > next {
			r.line(out, next)
			next += step
		}
	})
	r.course.Look(r.pool.State())
	return stuck
}

// line says in one how the pool stands.
func (r *ran) line(out io.Writer, at time.Duration) {
	s, total := r.pool.State(), r.pool.Total()
	fmt.Fprintf(out, "%12s  waiting %d, running %d, over %d; %.1f %% of the processors used\n", audit.Clock(at), s.Waiting, s.Running, s.Over, 100*s.Used.CPU.Cores()/total.CPU.Cores())
}
