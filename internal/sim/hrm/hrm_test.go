package hrm

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
)

func play(tb testing.TB, o Options, costs Costs) (*Result, Figures) {
	tb.Helper()
	r, err := Run(o, costs)
	if err != nil {
		tb.Fatalf("%+v: %v", o, err)
	}
	for i, j := range r.Jobs {
		if j.First <= j.Submitted || j.Placed < j.First || j.Ended < j.Placed+o.Shortest || j.Ended > j.Placed+o.Longest {
			tb.Fatalf("%+v: job %d: %+v", o, i+1, j)
		}
	}
	return r, r.Figures()
}

// TestPaper holds the shape of the paper's curves, with stated costs: that a central scheduler falls behind as more jobs come at once, that distributed
// ones do less, that undivided ones conflict the more the faster jobs come, and Roost's hardly ever; and the paper's bound.
func TestPaper(t *testing.T) {
	at := func(jobs int, style Style, rate int) Figures {
		o := Paper(jobs, style)
		if rate > 0 {
			o.Every = time.Second / time.Duration(rate)
		}
		_, f := play(t, o, Stated())
		return f
	}
	few, many, split := at(60, Central, 0), at(180, Central, 0), at(180, Parts, 0)
	if many.Mean < 2*few.Mean || split.Mean > many.Mean*3/4 || many.Worst >= 2500*time.Millisecond {
		t.Errorf("central: %+v, and with 180 jobs %+v; distributed: %+v", few, many, split)
	}
	if few.Proposed > 0 || split.Proposed != 180*40 || split.Conflicting() > 0.05 {
		t.Errorf("proposed: %+v, distributed %+v", few, split)
	}
	slow, fast := at(60, Whole, 10), at(60, Whole, 100)
	if slow.Conflicting() > 0.2 || fast.Conflicting() < 0.2 || fast.Conflicting() < 2*slow.Conflicting() {
		t.Errorf("undivided, 10 jobs/s: %+v; 100 jobs/s: %+v", slow, fast)
	}
	if f := at(60, Parts, 100); f.Conflicting() > 0.05 {
		t.Errorf("distributed, 100 jobs/s: %+v", f)
	}
}

// TestFull holds that all that is wanted is placed in the end though there is too little room, whoever places.
func TestFull(t *testing.T) {
	for _, style := range []Style{Central, Parts, Whole} {
		o := Options{
			Machines: 5, Cores: 4, Schedds: 3, Jobs: 10, Containers: 7, Shortest: time.Second, Longest: 3 * time.Second, Style: style,
			Delay: time.Millisecond, Commit: time.Millisecond, Every: 50 * time.Millisecond, News: 20 * time.Millisecond, Seed: 7,
		}
		_, f := play(t, o, Stated())
		if f.Worst < o.Shortest || f.Busy < 0.1 {
			t.Errorf("%v: nobody has waited for room: %+v", style, f)
		}
	}
}

// TestAgain holds that a run that is given the costs that another has measured is the same in every event, and that one with others, or of another seed,
// is not.
func TestAgain(t *testing.T) {
	o, ticks := Paper(12, Parts), time.Duration(0)
	o.Every = 5 * time.Millisecond
	m := &Measured{Clock: func() time.Duration {
		ticks += ticks%7*time.Microsecond + 3*time.Microsecond
		return ticks
	}}
	r, _ := play(t, o, m)
	again, _ := play(t, o, &Again{m.Taken})
	if again.Digest != r.Digest || again.Events != r.Events {
		t.Errorf("again: %d events, %x; before %d, %x", again.Events, again.Digest, r.Events, r.Digest)
	}
	stated, _ := play(t, o, Stated())
	twice, _ := play(t, o, Stated())
	o.Seed = 2
	other, _ := play(t, o, Stated())
	if stated.Digest != twice.Digest || stated.Digest == r.Digest || stated.Digest == other.Digest {
		t.Errorf("stated %x and %x, measured %x, of another seed %x", stated.Digest, twice.Digest, r.Digest, other.Digest)
	}
}

// TestRefused holds what cannot be played.
func TestRefused(t *testing.T) {
	for i, change := range []func(*Options){
		func(o *Options) { o.Machines = 0 }, func(o *Options) { o.Cores = 1 << 40 }, func(o *Options) { o.Jobs = -1 }, func(o *Options) { o.Schedds = 0 },
		func(o *Options) { o.Shortest = 0 }, func(o *Options) { o.Longest = 1 }, func(o *Options) { o.Delay = -1 }, func(o *Options) { o.Every = 48 * time.Hour },
	} {
		o := Paper(60, Central)
		change(&o)
		if _, err := Run(o, Stated()); !errors.Is(err, roost.Invalid) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// BenchmarkSteps tells what the steps take by the processor's time, which [Stated] has in round numbers.
func BenchmarkSteps(b *testing.B) {
	for _, style := range []Style{Central, Parts, Whole} {
		b.Run(style.String(), func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for b.Loop() {
				r, _ := play(b, Paper(180, style), &Measured{Clock: func() time.Duration {
					var t unix.Timespec
					unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
					return time.Duration(t.Nano())
				}})
				for s, spent := range r.Steps {
					if spent.Things > 0 {
						b.ReportMetric(spent.Total.Seconds()*1e6/float64(spent.Things), Step(s).String()+"-µs/thing")
						b.ReportMetric(spent.Most.Seconds()*1e6, Step(s).String()+"-µs-most")
					}
				}
			}
		})
	}
}
