package sim

import (
	"compress/gzip"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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

// TestPublished holds that the schedules are the published ones, job by job: how long each waits, whether it starts before the head of the queue, how long it was
// expected to take and how often it outlived that. In the fields of the format that it has no use for pyss writes the last three: 16, 18 and 17, of which -1 is
// never and 0 is once.
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
			p, procs := play(t, test.name, test.opt)
			differ := 0
			for i := range p.Jobs {
				o := &p.Jobs[i]
				same := o.Waited() == o.Wait && o.Early == (o.Partition == 1)
				if test.opt.Estimate != Asked {
					same = same && o.Expected == o.Think && int64(o.Outlived) == o.After+1
				}
				if !same {
					if differ++; differ <= 5 {
						t.Errorf("job %d of line %d: %s; it waited for %d s, want %d", o.ID, o.Line, says(o), o.Waited(), o.Wait)
					}
				}
			}
			if got := fmt.Sprintf("%.2f", Summarise(p, procs).Slowdown); got != test.slowdown || p.LeftOut > 0 {
				t.Errorf("the mean bounded slowdown is %s, want %s; %d jobs were left out", got, test.slowdown, p.LeftOut)
			}
			t.Logf("%d jobs on %d processors: %d differ; %d events", len(p.Jobs), procs, differ, p.Events)
		})
	}
}

// TestPublishedMeans holds that the mean bounded slowdowns are the published ones where no schedule is published.
func TestPublishedMeans(t *testing.T) {
	for _, test := range []struct {
		name     string
		opt      Options
		slowdown string
	}{
		{"KTH-SP2.easy", Options{Order: SJBF, Estimate: LastTwo}, "62.86"},
		{"CTC-SP2.easy", Options{Order: SJBF, Estimate: LastTwo}, "26.53"},
		{"KTH-SP2.easy", Options{Order: EASY, Estimate: Known}, "71.72"},
		{"CTC-SP2.easy", Options{Order: EASY, Estimate: Known}, "37.17"},
		{"KTH-SP2.easy", Options{Order: SJBF, Estimate: Known}, "49.85"},
		{"CTC-SP2.easy", Options{Order: SJBF, Estimate: Known}, "17.57"},
	} {
		p, procs := play(t, test.name, test.opt)
		if got := fmt.Sprintf("%.2f", Summarise(p, procs).Slowdown); got != test.slowdown {
			t.Errorf("%s, %+v: the mean bounded slowdown is %s, want %s", test.name, test.opt, got, test.slowdown)
		}
	}
}

// play replays a published log on the machine that it was of.
func play(t *testing.T, name string, opt Options) (*Played, int64) {
	t.Helper()
	log := published(t, name)
	procs, err := log.Processors()
	if err != nil {
		t.Fatal(err)
	}
	opt.Processors = procs
	p, err := Replay(log, opt)
	if err != nil {
		t.Fatal(err)
	}
	return p, procs
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

// FuzzReplay holds that whatever can be read as a log can be played, always ends, and comes out the same twice.
func FuzzReplay(f *testing.F) {
	f.Add("1 0 -1 100 3 -1 -1 3 100 -1 1 1 -1 -1 -1 -1 -1 -1\n2 1 -1 50 4 -1 -1 4 50 -1 1 1 -1 -1 -1 -1 -1 -1\n", uint8(4), uint8(0))
	f.Add("9 4294967296 -1 4294967296 1 -1 -1 1 4294967296 -1 1 1 -1 -1 -1 -1 -1 -1\n9 0 -1 -7 -9 -1 -1 0 -3 -1 1 1 -1 -1 -1 -1 -1 -1\n", uint8(1), uint8(5))
	f.Fuzz(func(t *testing.T, text string, processors, how uint8) {
		log, err := swf.Read(strings.NewReader(text))
		if err != nil || len(log.Jobs) > 100 {
			return
		}
		opt := Options{Processors: int64(processors), Order: Order(how % 3), Estimate: Estimate(how / 3 % 3), Correction: Correction(how / 9 % 2), Unasked: how >= 128}
		p, err := Replay(log, opt)
		if err != nil {
			if processors == 0 {
				return
			}
			t.Fatal(err)
		}
		again, err := Replay(log, opt)
		if err != nil || again.Digest != p.Digest {
			t.Fatalf("digests %x and %x, %v", p.Digest, again.Digest, err)
		}
		fitsAlways(t, p, opt.Processors)
		Summarise(p, opt.Processors)
	})
}
