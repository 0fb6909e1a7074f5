package hrm

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
)

func runPaper(tb testing.TB, o SimulationOptions, costs StepCosts) (*RunResult, RunFigures) {
	tb.Helper()
	r, err := Simulate(o, costs)
	if err != nil {
		tb.Fatalf("%+v: %v", o, err)
	}
	for i, j := range r.Jobs {
		if j.FirstStarted <= j.Submitted || j.LastStarted < j.FirstStarted || j.Ended < j.LastStarted+o.Shortest ||
			j.Ended > j.LastStarted+o.Longest {
			tb.Fatalf("%+v: job %d: %+v", o, i+1, j)
		}
	}
	return r, r.Figures()
}

// TestPaper checks the paper's curves with fixed costs. A central scheduler falls behind
// as jobs come faster, and distributed ones less. Without parts of the cell, conflicts
// grow with the rate; with them, as in Roost, they hardly occur. The paper's bound must
// hold.
func TestPaper(t *testing.T) {
	at := func(jobs int, style SchedulingStyle, rate int) RunFigures {
		o := PaperOptions(jobs, style)
		if rate > 0 {
			o.SubmitInterval = time.Second / time.Duration(rate)
		}
		_, f := runPaper(t, o, DefaultCosts())
		return f
	}
	few, many, split := at(60, LeaderOnly, 0), at(180, LeaderOnly, 0), at(180, CellParts, 0)
	if many.MeanDelay < 2*few.MeanDelay || split.MeanDelay > many.MeanDelay*3/4 ||
		many.MaxDelay >= 2500*time.Millisecond {
		t.Errorf("central: %+v, and with 180 jobs %+v; distributed: %+v", few, many, split)
	}
	if few.Proposed > 0 || split.Proposed != 180*40 || split.ConflictRatio() > 0.05 {
		t.Errorf("proposed: %+v, distributed %+v", few, split)
	}
	slow, fast := at(60, WholeCell, 10), at(60, WholeCell, 100)
	if slow.ConflictRatio() > 0.2 || fast.ConflictRatio() < 0.2 || fast.ConflictRatio() < 2*slow.ConflictRatio() {
		t.Errorf("undivided, 10 jobs/s: %+v; 100 jobs/s: %+v", slow, fast)
	}
	if f := at(60, CellParts, 100); f.ConflictRatio() > 0.05 {
		t.Errorf("distributed, 100 jobs/s: %+v", f)
	}
}

// TestFull checks for each style that a cell without enough room places everything in the
// end.
func TestFull(t *testing.T) {
	for _, style := range []SchedulingStyle{LeaderOnly, CellParts, WholeCell} {
		o := SimulationOptions{
			Machines: 5, Cores: 4, Schedds: 3, Jobs: 10, Containers: 7, Shortest: time.Second, Longest: 3 * time.Second,
			Style:        style,
			MessageDelay: time.Millisecond, CommitDelay: time.Millisecond, SubmitInterval: 50 * time.Millisecond,
			ReportInterval: 20 * time.Millisecond, Seed: 7,
		}
		_, f := runPaper(t, o, DefaultCosts())
		if f.MaxDelay < o.Shortest || f.Busy < 0.1 {
			t.Errorf("%v: nobody has waited for room: %+v", style, f)
		}
	}
}

// TestReplayedCosts checks that a run with replayed costs is the same in every event.
// Other costs or another seed must give another run.
func TestReplayedCosts(t *testing.T) {
	o, ticks := PaperOptions(12, CellParts), time.Duration(0)
	o.SubmitInterval = 5 * time.Millisecond
	m := &MeasuredCosts{Clock: func() time.Duration {
		ticks += ticks%7*time.Microsecond + 3*time.Microsecond
		return ticks
	}}
	r, _ := runPaper(t, o, m)
	again, _ := runPaper(t, o, &ReplayedCosts{m.Taken})
	if again.Digest != r.Digest || again.Events != r.Events {
		t.Errorf("again: %d events, %x; before %d, %x", again.Events, again.Digest, r.Events, r.Digest)
	}
	stated, _ := runPaper(t, o, DefaultCosts())
	twice, _ := runPaper(t, o, DefaultCosts())
	o.Seed = 2
	other, _ := runPaper(t, o, DefaultCosts())
	if stated.Digest != twice.Digest || stated.Digest == r.Digest || stated.Digest == other.Digest {
		t.Errorf("stated %x and %x, measured %x, of another seed %x", stated.Digest, twice.Digest, r.Digest,
			other.Digest)
	}
}

// TestRefused checks that invalid options are refused.
func TestRefused(t *testing.T) {
	for i, change := range []func(*SimulationOptions){
		func(o *SimulationOptions) {
			o.Machines = 0
		}, func(o *SimulationOptions) {
			o.Cores = 1 << 40
		}, func(o *SimulationOptions) { o.Jobs = -1 }, func(o *SimulationOptions) { o.Schedds = 0 },
		func(o *SimulationOptions) {
			o.Shortest = 0
		}, func(o *SimulationOptions) {
			o.Longest = 1
		}, func(o *SimulationOptions) {
			o.MessageDelay = -1
		}, func(o *SimulationOptions) { o.SubmitInterval = 48 * time.Hour },
	} {
		o := PaperOptions(60, LeaderOnly)
		change(&o)
		if _, err := Simulate(o, DefaultCosts()); !errors.Is(err, roost.Invalid) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// BenchmarkSteps measures the processor time of the steps, which [DefaultCosts] has
// rounded.
func BenchmarkSteps(b *testing.B) {
	for _, style := range []SchedulingStyle{LeaderOnly, CellParts, WholeCell} {
		b.Run(style.String(), func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for b.Loop() {
				r, _ := runPaper(b, PaperOptions(180, style), &MeasuredCosts{Clock: func() time.Duration {
					var t unix.Timespec
					unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
					return time.Duration(t.Nano())
				}})
				for s, spent := range r.Steps {
					if spent.Things > 0 {
						b.ReportMetric(spent.Total.Seconds()*1e6/float64(spent.Things),
							CostStep(s).String()+"-µs/thing")
						b.ReportMetric(spent.Max.Seconds()*1e6, CostStep(s).String()+"-µs-most")
					}
				}
			}
		})
	}
}
