package sim

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
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/sim/pool"
	"github.com/roost-batch/roost/internal/sim/workload"
)

func runSubcommand() (frame.Subcommand, []ucli.Flag) {
	return frame.Subcommand{
			Name: "run", Summary: "run a whole pool", MinOperands: 1, MaxOperands: 2,
			OperandNames: "a checkpoint of a cell, a mix of jobs, a log in the Standard Workload Format, or " +
				"both lists of the openb trace; - is the standard input", Run: runPool,
		}, append([]ucli.Flag{
			&ucli.StringFlag{Name: "step", Usage: "run: say how the pool stands each `TIME` of its clock"},
			&ucli.BoolFlag{Name: "events", Usage: "run: print a line for each change"},
			&ucli.BoolFlag{Name: "pause", Usage: "run: stop before anything happens, and do what the standard input " +
				"says, a command a line: step, until, run, show, jobs, machines, quit, help"},
			untilFlag(), machinesFlag(), processorsFlag(), onceFlag(), seedFlag(),
		}, append(serviceFlags(), resultFlags()...)...)
}

// untilFlag and machinesFlag are of all that runs pools.
func untilFlag() ucli.Flag {
	return &ucli.StringFlag{Name: "until",
		Usage: "faults: each run ends after this `DURATION`; run: it does, as in 12h or 30d"}
}

func machinesFlag() ucli.Flag {
	return &ucli.IntFlag{Name: "machines",
		Usage: "faults: at most `N` in a run; run: spread the processors of a log over so many, or take the first so " +
			"many of a trace"}
}

// simConfig is a pool that is to be run, and what there is to say of it.
type simConfig struct {
	config         pool.SimulationConfig
	skippedJobs    int       // jobs of a log that were left out
	notes          []string  // what of a cell is not played
	checkpointTime time.Time // the moment of a checkpoint; zero: it is of none
}

// simResult is what has come of a pool.
type simResult struct {
	simConfig
	name    string
	pool    *pool.Pool
	watch   *serviceWatch // nil: there is nothing to watch
	history *workload.TimeSeries

	endTime, step time.Duration
	nextStatus    time.Duration // when it is to be said again how the pool stands

	isStuck  bool // nothing more is to be expected, and not all jobs are over
	runOnce  bool
	duration time.Duration
}

func runPool(c *frame.Invocation, args []string) error {
	until, err := lengthFlag(c, "until", pool.ForEver)
	if err != nil {
		return err
	}
	step, err := lengthFlag(c, "step", 0)
	if err != nil {
		return err
	}
	if c.Flag("pause") {
		if slices.Contains(args, "-") {
			return frame.UsageErrorf("--pause reads commands from the standard input, which cannot be the file, too")
		} else if c.WantsJSON() {
			return frame.UsageErrorf("--pause is for people, and --json for programs")
		}
	}
	from, err := readSimPool(c, args)
	if err == nil {
		err = planActions(c, &from)
	}
	if err != nil {
		return err
	}
	out := bufio.NewWriter(c.Stdout)
	from.config.OnlyOnChange = true
	eye := &eventPrinter{out: out, printAll: c.Flag("events")}
	if eye.printAll || c.Flag("pause") {
		from.config.Observe = eye.printEvents
	}
	watch := watchServices(&from.config)
	if watch != nil {
		from.config.Observe = func(s audit.Event) { watch.observe(s); eye.printEvents(s) }
	}
	began := time.Now()
	p, err := pool.New(from.config)
	if err != nil {
		return frame.KindErrorf(roost.Invalid, "%s: %v", document.PrintableText(args[0]), err)
	}
	r := &simResult{simConfig: from, name: filepath.Base(document.PrintableText(args[len(args)-1])), pool: p,
		history: workload.NewTimeSeries(p), watch: watch}
	r.endTime, r.step, r.nextStatus = until, step, step
	bad := 0
	if c.Flag("pause") {
		x := &poolDebugger{simResult: r, c: c, printer: eye, out: out}
		err = x.readCommands()
		bad = x.badCommands
		r.history.AddSample(p.Sample())
	} else {
		r.isStuck = r.advance(until, out, nil)
	}
	r.duration = time.Since(began)
	if err := errors.Join(err, out.Flush()); err != nil {
		return frame.KindErrorf(roost.NoOutput, "%v", err)
	}
	if r.runOnce = c.Flag("once") || c.Flag("pause"); !r.runOnce {
		if err := r.verifyRerun(until); err != nil {
			return err
		}
	}
	if err := reportRun(c, r); err != nil || bad == 0 {
		return err
	}
	return frame.UsageErrorf("%s made no sense", document.Plural(bad, "command"))
}

// verifyRerun plays it once more, and says if that comes out differently.
func (r *simResult) verifyRerun(until time.Duration) error {
	config := r.config
	config.Observe = nil
	again, err := pool.New(config)
	if err != nil {
		return err
	}
	advanceUntil(again, until, until == pool.ForEver, func(time.Duration) bool { return true })
	if p := r.pool; again.Digest() != p.Digest() || again.Events() != p.Events() {
		return frame.KindErrorf(roost.Internal,
			"%s: run again, it came out differently: %016x and %016x; please tell us, "+
				"with the file", r.name, p.Digest(), again.Digest())
	}
	return nil
}

// lengthFlag is a flag that is a length of time.
func lengthFlag(c *frame.Invocation, flag string, otherwise time.Duration) (time.Duration, error) {
	if c.StringFlag(flag) == "" {
		return otherwise, nil
	}
	d, err := roost.ParseDuration(c.StringFlag(flag))
	if err != nil || d <= 0 {
		return 0, frame.WithHint(frame.UsageErrorf("--%s %s: that is no length of time above 0", flag,
			c.StringFlag(flag)),
			"as in --"+flag+" 90s, 12h or 30d")
	}
	return d, nil
}

// stuckTime is how long nothing may begin or end before a run counts as stuck.
// Displacements in an hour are bounded, so the next hour may bring more.
const stuckTime = 2 * time.Hour

// absentOwnerTimeout is the same where owners come and go: each day of a week may differ.
const absentOwnerTimeout = 8 * 24 * time.Hour

// stuckTimeout is for how long nothing has begun or ended in a pool from which nothing
// more is expected.
func stuckTimeout(p *pool.Pool) time.Duration {
	if p.HasOwners() {
		return absentOwnerTimeout
	}
	return stuckTime
}

// advanceUntil runs until all jobs are over or an instant is reached. If it may give up,
// it also ends, and reports so, when nothing more is expected. Before each event it asks
// whether to go on, and says when the event is.
func advanceUntil(p *pool.Pool, until time.Duration, mayGiveUp bool, goOn func(at time.Duration) bool) (stuck bool) {
	for !p.AllEnded() {
		at, ok := p.NextTime()
		if !ok || at > until {
			return false
		}
		if mayGiveUp && p.IsStuck(stuckTimeout(p)) {
			return true
		}
		if !goOn(at) {
			return false
		}
		p.RunNext()
	}
	return false
}

// advance goes on until an instant, or until it is enough, and says how the pool stands
// each step.
func (r *simResult) advance(until time.Duration, out io.Writer, enough func() bool) (stuck bool) {
	stuck = advanceUntil(r.pool, until, until == pool.ForEver, func(at time.Duration) bool {
		if enough != nil && enough() {
			return false
		}
		for at > r.history.NextSample() {
			r.history.AddSample(r.pool.Sample())
		}
		for r.step > 0 && at > r.nextStatus {
			r.statusLine(out, r.nextStatus)
			r.nextStatus += r.step
		}
		return true
	})
	if enough == nil {
		r.history.AddSample(r.pool.Sample())
	}
	return stuck
}

// statusLine says in one how the pool stands.
func (r *simResult) statusLine(out io.Writer, at time.Duration) {
	s, total := r.pool.Sample(), r.pool.Total()
	fmt.Fprintf(out, "%12s  waiting %d, running %d, over %d; %.1f %% of the processors used\n", audit.ClockText(at),
		s.Waiting, s.Running, s.Ended, 100*s.Used.CPU.Cores()/total.CPU.Cores())
}
