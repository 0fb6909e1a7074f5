package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/roost-batch/roost/internal/swf"
)

// naive plays a log as the simulator does that the published schedules are of (pyss), with nothing but lists: no matcher, no forecast, no heap.
type naive struct {
	Options
	now     int64
	jobs    []naiveJob
	events  []naiveEvent
	counter int
	waiting []int
	running []int
	recent  map[int64][]int64 // by user: how long those took that have ended, in that order
}

type naiveJob struct {
	swf.Job
	procs, length, guess int64
	first                int64 // guess when it was submitted
	start                int64
	early                bool
	outlived             int
}

type naiveEvent struct {
	at      int64
	kind    int // 0 a prediction is over, 1 submission, 2 termination, 3 start
	counter int
	job     int
}

func playNaively(log *swf.Log, opt Options) []naiveJob {
	n := &naive{Options: opt, recent: map[int64][]int64{}}
	for _, j := range log.Jobs {
		procs := j.Requested
		if procs <= 0 {
			procs = j.Procs
		}
		if j.Request <= 0 && opt.Unasked {
			j.Request = j.Run
		}
		if procs <= 0 || procs > opt.Processors || j.Procs > opt.Processors || j.Run <= 0 || j.Request <= 0 {
			continue
		}
		n.jobs = append(n.jobs, naiveJob{Job: j, procs: procs, length: min(j.Run, j.Request), start: -1})
	}
	slices.SortStableFunc(n.jobs, func(a, b naiveJob) int { return cmp.Or(cmp.Compare(a.Submit, b.Submit), cmp.Compare(a.ID, b.ID)) })
	for i := range n.jobs {
		n.add(n.jobs[i].Submit, 1, i)
	}
	for len(n.events) > 0 {
		e := slices.MinFunc(n.events, func(a, b naiveEvent) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.kind, b.kind), cmp.Compare(a.counter, b.counter))
		})
		n.events = slices.DeleteFunc(n.events, func(o naiveEvent) bool { return o == e })
		n.now = e.at
		n.play(e.kind, e.job)
	}
	return n.jobs
}

func (n *naive) add(at int64, kind, job int) {
	n.counter++
	n.events = append(n.events, naiveEvent{at, kind, n.counter, job})
}

func (n *naive) play(kind, i int) {
	j := &n.jobs[i]
	switch kind {
	case 0:
		old := 0
		if j.outlived > 0 {
			old = []int{60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000}[j.outlived-1]
		}
		steps := []int{60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000}
		if n.Correction == ByRequest || j.outlived >= len(steps) {
			j.guess = j.Request
		} else {
			j.guess = min(j.guess-int64(old)+int64(steps[j.outlived]), j.Request)
		}
		j.outlived++
		n.expire(i)
	case 1:
		switch ended := n.recent[j.User]; {
		case n.Estimate == Known:
			j.guess = j.length
		case n.Estimate == LastTwo && len(ended) > 1:
			j.guess = min((ended[len(ended)-1]+ended[len(ended)-2])/2, j.Request)
		default:
			j.guess = j.Request
		}
		j.first = j.guess
		n.waiting = append(n.waiting, i)
		if n.Order != EASY || n.free(n.now) >= j.procs {
			n.schedule()
		}
	case 2:
		n.recent[j.User] = append(n.recent[j.User], j.length)
		n.running = slices.DeleteFunc(n.running, func(k int) bool { return k == i })
		n.schedule()
	case 3:
		n.add(n.now+j.length, 2, i)
		n.expire(i)
	}
}

func (n *naive) expire(i int) {
	if j := &n.jobs[i]; j.guess < j.length {
		n.add(j.start+j.guess, 0, i)
	}
}

// free is how many processors nobody has at an instant, if all goes as it is expected to.
func (n *naive) free(at int64) int64 {
	free := n.Processors
	for _, i := range n.running {
		if j := &n.jobs[i]; j.start+j.guess > at {
			free -= j.procs
		}
	}
	return free
}

func (n *naive) begin(i int) {
	n.waiting = slices.DeleteFunc(n.waiting, func(k int) bool { return k == i })
	n.running = append(n.running, i)
	n.jobs[i].start = n.now
	n.add(n.now, 3, i)
}

func (n *naive) schedule() {
	for len(n.waiting) > 0 && n.jobs[n.waiting[0]].procs <= n.free(n.now) {
		n.begin(n.waiting[0])
	}
	if len(n.waiting) < 2 || n.Order == FCFS {
		return
	}
	head := &n.jobs[n.waiting[0]]
	shadow := int64(-1)
	for _, i := range n.running {
		at := n.jobs[i].start + n.jobs[i].guess
		if at > n.now && n.free(at) >= head.procs && (shadow < 0 || at < shadow) {
			shadow = at
		}
	}
	rest := slices.Clone(n.waiting[1:])
	if n.Order == SJBF {
		slices.SortStableFunc(rest, func(a, b int) int { return cmp.Compare(n.jobs[a].guess, n.jobs[b].guess) })
	}
	for _, i := range rest {
		if j := &n.jobs[i]; n.fits(j, head, shadow) {
			j.early = true
			n.begin(i)
		}
	}
}

// fits looks at each instant at which what is free changes while a job would run.
func (n *naive) fits(j, head *naiveJob, shadow int64) bool {
	instants := []int64{n.now, shadow}
	for _, i := range n.running {
		instants = append(instants, n.jobs[i].start+n.jobs[i].guess)
	}
	for _, at := range instants {
		if at < n.now || at >= n.now+j.guess {
			continue
		}
		free := n.free(at)
		if at >= shadow && at < shadow+head.guess {
			free -= head.procs
		}
		if free < j.procs {
			return false
		}
	}
	return true
}

// randomLog is a log in which much happens at the same time, on a machine of so many processors.
func randomLog(rng *rand.Rand, procs int64) *swf.Log {
	log := &swf.Log{}
	grain := []int64{1, 1, 7, 60, 1 << 31 / 50}[rng.IntN(5)] // of all times: 60 is the first step of corrections; the last makes times huge
	crowd := 1 + rng.Int64N(12)
	at := int64(0)
	for i := range 10 + rng.IntN(60) {
		if rng.IntN(3) > 0 {
			at += grain * rng.Int64N(crowd)
		}
		run := grain * rng.Int64N(2*crowd)
		j := swf.Job{ID: int64(i), Line: i + 1, Submit: at, Run: run, Procs: 1 + rng.Int64N(procs), Request: run + grain*rng.Int64N(3*crowd), User: rng.Int64N(4)}
		switch j.Requested = j.Procs; rng.IntN(30) {
		case 0:
			j.Procs = -1
		case 1:
			j.Requested = -1
		case 2:
			j.Requested = procs + 1
		case 3:
			j.Procs = procs + 1
		case 4:
			j.Run = -1
		case 5:
			j.Request = -1
		case 6:
			j.Request = run / 2
		case 7:
			j.Requested = procs
		case 8, 9, 10:
			j.Requested, j.Procs = 1, 1
		}
		log.Jobs = append(log.Jobs, j)
	}
	if rng.IntN(4) == 0 {
		rng.Shuffle(len(log.Jobs), func(i, k int) { log.Jobs[i], log.Jobs[k] = log.Jobs[k], log.Jobs[i] })
	}
	return log
}

// TestOracle plays random logs both ways, under each order, expectation and correction.
func TestOracle(t *testing.T) {
	early, outlived := 0, 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 5))
		procs := []int64{1, 2, 5, 16, 100, 93_312}[rng.IntN(6)]
		log := randomLog(rng, procs)
		for _, order := range []Order{FCFS, EASY, SJBF} {
			for _, how := range []struct {
				Estimate
				Correction
			}{{Asked, ByRequest}, {Known, ByRequest}, {LastTwo, ByRequest}, {LastTwo, BySteps}} {
				opt := Options{Processors: procs, Order: order, Estimate: how.Estimate, Correction: how.Correction, Unasked: seed%3 == 0}
				p, err := Replay(log, opt)
				if err != nil {
					t.Fatal(err)
				}
				want := playNaively(log, opt)
				if len(p.Jobs) != len(want) || p.LeftOut != len(log.Jobs)-len(want) {
					t.Fatalf("seed %d: %d jobs played, %d left out; want %d", seed, len(p.Jobs), p.LeftOut, len(want))
				}
				for i := range want {
					got, want := says(&p.Jobs[i]), want[i].says()
					if got != want {
						t.Fatalf("seed %d, %+v:\ngot  %s\nwant %s", seed, opt, got, want)
					}
					if p.Jobs[i].Early {
						early++
					}
					outlived += p.Jobs[i].Outlived
				}
				fitsAlways(t, p, procs)
			}
		}
	}
	if early < 1000 || outlived < 1000 {
		t.Errorf("only %d jobs started before the head of the queue, and only %d times somebody outlived what was expected: these logs test little", early, outlived)
	}
}

func says(o *Outcome) string {
	return fmt.Sprintf("job %d of %d processors, expected to take %d, starts at %d, early %t, outlived that %d times", o.ID, o.Procs, o.Expected, o.Start, o.Early, o.Outlived)
}

func (j *naiveJob) says() string {
	return fmt.Sprintf("job %d of %d processors, expected to take %d, starts at %d, early %t, outlived that %d times", j.ID, j.procs, j.first, j.start, j.early, j.outlived)
}
