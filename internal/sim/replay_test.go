package sim

import (
	"compress/gzip"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/swf"
)

// published reads a schedule of pyss's, of the experiments of Gaussier et al. (SC'15).
func published(tb testing.TB, name string) *swf.Log {
	dir := os.Getenv("ROOST_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	f, err := os.Open(filepath.Join(dir, "data", "swf", name+".swf.gz"))
	if os.IsNotExist(err) {
		tb.Skipf("SKIPPED: the published schedule is not here: %v", err)
	}
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	log, err := swf.Read(z)
	if err != nil {
		tb.Fatal(err)
	}
	return log
}

// TestPublished holds that the waits are those of the published schedules, job by job.
func TestPublished(t *testing.T) {
	for _, test := range []struct {
		name     string
		opt      Options
		slowdown string
	}{
		{"KTH-SP2.easy", Options{Order: EASY}, "92.58"},
		{"CTC-SP2.easy", Options{Order: EASY}, "49.57"},
		{"KTH-SP2.easy-tsafrir", Options{Order: SJBF, Estimate: LastTwo, Correction: BySteps}, "63.50"},
		{"CTC-SP2.easy-tsafrir", Options{Order: SJBF, Estimate: LastTwo, Correction: BySteps}, "85.77"},
	} {
		t.Run(test.name, func(t *testing.T) {
			log := published(t, test.name)
			procs, err := log.Processors()
			if err != nil {
				t.Fatal(err)
			}
			test.opt.Processors = procs
			began := time.Now()
			p, err := Replay(log, test.opt)
			if err != nil {
				t.Fatal(err)
			}
			took := time.Since(began)
			differ := 0
			for i := range p.Jobs {
				o := &p.Jobs[i]
				if o.Waited() != o.Wait {
					if differ++; differ <= 5 {
						t.Errorf("job %d of %d processors for %d s, submitted at %d, waits for %d s, want %d", o.ID, o.Procs, o.Request, o.Submit, o.Waited(), o.Wait)
					}
				}
			}
			if got := fmt.Sprintf("%.2f", Summarise(p, procs).Slowdown); got != test.slowdown {
				t.Errorf("the mean bounded slowdown is %s, want %s", got, test.slowdown)
			}
			t.Logf("%d jobs on %d processors, %d left out: %d waits differ; %d events, %.0f jobs/s", len(p.Jobs), procs, p.LeftOut, differ, p.Events, float64(len(p.Jobs))/took.Seconds())
		})
	}
}

// TestReplayedTwice holds that a replay comes out the same each time, in each way of replaying.
func TestReplayedTwice(t *testing.T) {
	log := &swf.Log{}
	rng := rand.New(rand.NewPCG(7, 8))
	for i, at := 0, int64(0); i < 500; i++ {
		at += rng.Int64N(300)
		run := 1 + rng.Int64N(2000)
		log.Jobs = append(log.Jobs, swf.Job{ID: int64(i), Submit: at, Run: run, Procs: 1 + rng.Int64N(16), Request: run + rng.Int64N(3000), User: rng.Int64N(5)})
	}
	seen := map[uint64]bool{}
	for _, order := range []Order{FCFS, EASY, SJBF} {
		for _, estimate := range []Estimate{Asked, Known, LastTwo} {
			opt := Options{Processors: 16, Order: order, Estimate: estimate}
			first, err := Replay(log, opt)
			if err != nil {
				t.Fatal(err)
			}
			second, err := Replay(log, opt)
			if err != nil || first.Digest != second.Digest || first.Events != second.Events {
				t.Errorf("%v %v: %x and %x, %v", order, estimate, first.Digest, second.Digest, err)
			}
			seen[first.Digest] = true
			fitsAlways(t, first, 16)
		}
	}
	if len(seen) < 5 {
		t.Errorf("only %d of 9 replays differ", len(seen))
	}
}

// fitsAlways holds that all jobs ran, none before it was submitted, and never more than the machine has.
func fitsAlways(t *testing.T, p *Played, procs int64) {
	t.Helper()
	change := map[int64]int64{}
	for i := range p.Jobs {
		o := &p.Jobs[i]
		if o.Start < o.Submit {
			t.Errorf("job %d, submitted at %d, starts at %d", o.ID, o.Submit, o.Start)
		}
		change[o.Start] += o.Procs
		change[o.Start+o.Length] -= o.Procs
	}
	used := int64(0)
	for _, at := range slices.Sorted(maps.Keys(change)) {
		if used += change[at]; used > procs {
			t.Fatalf("at %d, %d of %d processors are in use", at, used, procs)
		}
	}
}

// TestFirstComeFirstServed replays four jobs in the three orders, which can be followed by hand.
func TestFirstComeFirstServed(t *testing.T) {
	// Job 0 has three of four processors until 100; job 1 wants all; job 2 would delay it and job 3 would not.
	log := &swf.Log{Jobs: []swf.Job{
		{ID: 0, Submit: 0, Run: 100, Procs: 3, Request: 100},
		{ID: 1, Submit: 1, Run: 50, Procs: 4, Request: 50},
		{ID: 2, Submit: 2, Run: 90, Procs: 1, Request: 200},
		{ID: 3, Submit: 3, Run: 50, Procs: 1, Request: 60},
		{ID: 4, Submit: 4, Run: 10, Procs: 1, Request: 20},
	}}
	for order, want := range map[Order][]int64{FCFS: {0, 100, 150, 150, 150}, EASY: {0, 100, 150, 3, 53}, SJBF: {0, 100, 150, 3, 53}} {
		p, err := Replay(log, Options{Processors: 4, Order: order})
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range p.Jobs {
			if o.Start != want[i] {
				t.Errorf("order %d: job %d starts at %d, want %d", order, o.ID, o.Start, want[i])
			}
		}
	}
}
