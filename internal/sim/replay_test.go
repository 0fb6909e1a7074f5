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

	"github.com/roost-batch/roost/internal/sim/trace"
)

// publishedSchedule reads a schedule of pyss from the experiments of Gaussier et al.
// (SC'15).
func publishedSchedule(tb testing.TB, name string) *trace.Log {
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
	log, err := trace.Read(z)
	if err != nil {
		tb.Fatal(err)
	}
	return log
}

// TestPublished compares the replay with the published schedules job by job. It compares
// the wait, whether the job was backfilled, the estimate, and how often the job exceeded
// it. pyss writes the last three into fields of the format that it does not need: 16, 18
// and 17. In field 17, -1 means never and 0 means once.
func TestPublished(t *testing.T) {
	for _, test := range []struct {
		name     string
		opt      ReplayOptions
		slowdown string
	}{
		{"KTH-SP2.easy", ReplayOptions{Order: EASY}, "92.58"},
		{"CTC-SP2.easy", ReplayOptions{Order: EASY}, "49.57"},
		{"KTH-SP2.easy-tsafrir", ReplayOptions{Order: SJBF, Estimate: LastTwo, Correction: BySteps}, "63.50"},
		{"CTC-SP2.easy-tsafrir", ReplayOptions{Order: SJBF, Estimate: LastTwo, Correction: BySteps}, "85.77"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, procs := playPublished(t, test.name, test.opt)
			differ := 0
			for i := range p.Jobs {
				o := &p.Jobs[i]
				same := o.Waited() == o.Wait && o.Early == (o.Partition == 1)
				if test.opt.Estimate != Asked {
					same = same && o.Expected == o.ThinkTime && int64(o.Outlived) == o.PrecedingJob+1
				}
				if !same {
					if differ++; differ <= 5 {
						t.Errorf("job %d of line %d: %s; it waited for %d s, want %d", o.ID, o.Line, outcomeText(o),
							o.Waited(), o.Wait)
					}
				}
			}
			if got := fmt.Sprintf("%.2f", Summarize(p, procs).Slowdown); got != test.slowdown || p.Skipped > 0 {
				t.Errorf("the mean bounded slowdown is %s, want %s; %d jobs were left out", got,
					test.slowdown, p.Skipped)
			}
			t.Logf("%d jobs on %d processors: %d differ; %d events", len(p.Jobs), procs, differ, p.Events)
		})
	}
}

// TestPublishedMeans compares mean bounded slowdowns with published ones for which no
// schedule is published.
func TestPublishedMeans(t *testing.T) {
	for _, test := range []struct {
		name     string
		opt      ReplayOptions
		slowdown string
	}{
		{"KTH-SP2.easy", ReplayOptions{Order: SJBF, Estimate: LastTwo}, "62.86"},
		{"CTC-SP2.easy", ReplayOptions{Order: SJBF, Estimate: LastTwo}, "26.53"},
		{"KTH-SP2.easy", ReplayOptions{Order: EASY, Estimate: Known}, "71.72"},
		{"CTC-SP2.easy", ReplayOptions{Order: EASY, Estimate: Known}, "37.17"},
		{"KTH-SP2.easy", ReplayOptions{Order: SJBF, Estimate: Known}, "49.85"},
		{"CTC-SP2.easy", ReplayOptions{Order: SJBF, Estimate: Known}, "17.57"},
	} {
		p, procs := playPublished(t, test.name, test.opt)
		if got := fmt.Sprintf("%.2f", Summarize(p, procs).Slowdown); got != test.slowdown {
			t.Errorf("%s, %+v: the mean bounded slowdown is %s, want %s", test.name, test.opt, got, test.slowdown)
		}
	}
}

// playPublished replays a published log on the machine that the log is from.
func playPublished(t *testing.T, name string, opt ReplayOptions) (*Result, int64) {
	t.Helper()
	log := publishedSchedule(t, name)
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

// TestReplayedTwice checks that a second replay has the same outcome, with all options.
func TestReplayedTwice(t *testing.T) {
	log := &trace.Log{}
	rng := rand.New(rand.NewPCG(7, 8))
	for i, at := 0, int64(0); i < 500; i++ {
		at += rng.Int64N(300)
		run := 1 + rng.Int64N(2000)
		log.Jobs = append(log.Jobs, trace.Job{ID: int64(i), Submit: at, RunTime: run, Processors: 1 + rng.Int64N(16),
			RequestedTime: run + rng.Int64N(3000), User: rng.Int64N(5)})
	}
	seen := map[uint64]bool{}
	for _, order := range []QueueOrder{FirstComeFirstServed, EASY, SJBF} {
		for _, estimate := range []RuntimeEstimate{Asked, Known, LastTwo} {
			opt := ReplayOptions{Processors: 16, Order: order, Estimate: estimate}
			first, err := Replay(log, opt)
			if err != nil {
				t.Fatal(err)
			}
			second, err := Replay(log, opt)
			if err != nil || first.Digest != second.Digest || first.Events != second.Events {
				t.Errorf("%v %v: %x and %x, %v", order, estimate, first.Digest, second.Digest, err)
			}
			seen[first.Digest] = true
			checkFits(t, first, 16)
		}
	}
	if len(seen) < 5 {
		t.Errorf("only %d of 9 replays differ", len(seen))
	}
}

// checkFits checks that every job ran, after its submission, and that the machine was
// never overcommitted.
func checkFits(t *testing.T, p *Result, procs int64) {
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

// TestFirstComeFirstServed replays four jobs in the three orders, with results worked out
// by hand.
func TestFirstComeFirstServed(t *testing.T) {
	// Job 0 has three of four processors until 100; job 1 wants all; job 2 would delay
	// job 1, and job 3 would not.
	log := &trace.Log{Jobs: []trace.Job{
		{ID: 0, Submit: 0, RunTime: 100, Processors: 3, RequestedTime: 100},
		{ID: 1, Submit: 1, RunTime: 50, Processors: 4, RequestedTime: 50},
		{ID: 2, Submit: 2, RunTime: 90, Processors: 1, RequestedTime: 200},
		{ID: 3, Submit: 3, RunTime: 50, Processors: 1, RequestedTime: 60},
		{ID: 4, Submit: 4, RunTime: 10, Processors: 1, RequestedTime: 20},
	}}
	for order, want := range map[QueueOrder][]int64{FirstComeFirstServed: {0, 100, 150, 150, 150},
		EASY: {0, 100, 150, 3, 53}, SJBF: {0, 100, 150, 3, 53}} {
		p, err := Replay(log, ReplayOptions{Processors: 4, Order: order})
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

// FuzzReplay checks that every readable log can be replayed, and twice with the same
// outcome.
func FuzzReplay(f *testing.F) {
	f.Add("1 0 -1 100 3 -1 -1 3 100 -1 1 1 -1 -1 -1 -1 -1 -1\n2 1 -1 50 4 -1 -1 4 50 -1 1 1 -1 -1 -1 -1 -1 -1\n",
		uint8(4), uint8(0))
	f.Add("9 4294967296 -1 4294967296 1 -1 -1 1 4294967296 -1 1 1 -1 -1 -1 -1 -1 -1\n9 0 -1 -7 -9 -1 -1 0 -3 -1 "+
		"1 1 -1 -1 -1 -1 -1 -1\n", uint8(1), uint8(5))
	f.Fuzz(func(t *testing.T, text string, processors, how uint8) {
		log, err := trace.Read(strings.NewReader(text))
		if err != nil || len(log.Jobs) > 100 {
			return
		}
		opt := ReplayOptions{Processors: int64(processors), Order: QueueOrder(how % 3),
			Estimate: RuntimeEstimate(how / 3 % 3), Correction: PredictionCorrection(how / 9 % 2),
			AssumeRuntime: how >= 128}
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
		checkFits(t, p, opt.Processors)
		Summarize(p, opt.Processors)
	})
}
