package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/roost-batch/roost/internal/sim/trace"
)

// naiveReplay replays a log as pyss does, the simulator of the published schedules. It
// uses only lists: no matcher, no timeline, no heap.
type naiveReplay struct {
	ReplayOptions
	now     int64
	jobs    []naiveJob
	events  []naiveEvent
	counter int
	waiting []int
	running []int
	recent  map[int64][]int64 // by user: run times of the ended jobs, in the order of their ends
}

type naiveJob struct {
	trace.Job
	procs, length, predicted int64
	firstPredicted           int64 // estimate at submission
	start                    int64
	early                    bool
	outlived                 int
}

type naiveEvent struct {
	at      int64
	kind    int // 0 estimate exceeded, 1 submission, 2 end, 3 start
	counter int
	job     int
}

func playNaively(log *trace.Log, opt ReplayOptions) []naiveJob {
	n := &naiveReplay{ReplayOptions: opt, recent: map[int64][]int64{}}
	for _, j := range log.Jobs {
		procs := j.RequestedProcessors
		if procs <= 0 {
			procs = j.Processors
		}
		if j.RequestedTime <= 0 && opt.AssumeRuntime {
			j.RequestedTime = j.RunTime
		}
		if procs <= 0 || procs > opt.Processors || j.Processors > opt.Processors || j.RunTime <= 0 ||
			j.RequestedTime <= 0 {
			continue
		}
		n.jobs = append(n.jobs, naiveJob{Job: j, procs: procs, length: min(j.RunTime, j.RequestedTime), start: -1})
	}
	slices.SortStableFunc(n.jobs, func(a, b naiveJob) int {
		return cmp.Or(cmp.Compare(a.Submit, b.Submit), cmp.Compare(a.ID, b.ID))
	})
	for i := range n.jobs {
		n.addEvent(n.jobs[i].Submit, 1, i)
	}
	for len(n.events) > 0 {
		e := slices.MinFunc(n.events, func(a, b naiveEvent) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.kind, b.kind), cmp.Compare(a.counter, b.counter))
		})
		n.events = slices.DeleteFunc(n.events, func(o naiveEvent) bool { return o == e })
		n.now = e.at
		n.run(e.kind, e.job)
	}
	return n.jobs
}

func (n *naiveReplay) addEvent(at int64, kind, job int) {
	n.counter++
	n.events = append(n.events, naiveEvent{at, kind, n.counter, job})
}

func (n *naiveReplay) run(kind, i int) {
	j := &n.jobs[i]
	switch kind {
	case 0:
		old := 0
		if j.outlived > 0 {
			old = []int{60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000}[j.outlived-1]
		}
		steps := []int{60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000}
		if n.Correction == ByRequest || j.outlived >= len(steps) {
			j.predicted = j.RequestedTime
		} else {
			j.predicted = min(j.predicted-int64(old)+int64(steps[j.outlived]), j.RequestedTime)
		}
		j.outlived++
		n.expirePredictions(i)
	case 1:
		switch ended := n.recent[j.User]; {
		case n.Estimate == Known:
			j.predicted = j.length
		case n.Estimate == LastTwo && len(ended) > 1:
			j.predicted = min((ended[len(ended)-1]+ended[len(ended)-2])/2, j.RequestedTime)
		default:
			j.predicted = j.RequestedTime
		}
		j.firstPredicted = j.predicted
		n.waiting = append(n.waiting, i)
		if n.Order != EASY || n.freeAt(n.now) >= j.procs {
			n.startFitting()
		}
	case 2:
		n.recent[j.User] = append(n.recent[j.User], j.length)
		n.running = slices.DeleteFunc(n.running, func(k int) bool { return k == i })
		n.startFitting()
	case 3:
		n.addEvent(n.now+j.length, 2, i)
		n.expirePredictions(i)
	}
}

func (n *naiveReplay) expirePredictions(i int) {
	if j := &n.jobs[i]; j.predicted < j.length {
		n.addEvent(j.start+j.predicted, 0, i)
	}
}

// freeAt returns the number of processors that are free at an instant if all estimates
// hold.
func (n *naiveReplay) freeAt(at int64) int64 {
	free := n.Processors
	for _, i := range n.running {
		if j := &n.jobs[i]; j.start+j.predicted > at {
			free -= j.procs
		}
	}
	return free
}

func (n *naiveReplay) startJob(i int) {
	n.waiting = slices.DeleteFunc(n.waiting, func(k int) bool { return k == i })
	n.running = append(n.running, i)
	n.jobs[i].start = n.now
	n.addEvent(n.now, 3, i)
}

func (n *naiveReplay) startFitting() {
	for len(n.waiting) > 0 && n.jobs[n.waiting[0]].procs <= n.freeAt(n.now) {
		n.startJob(n.waiting[0])
	}
	if len(n.waiting) < 2 || n.Order == FirstComeFirstServed {
		return
	}
	head := &n.jobs[n.waiting[0]]
	shadow := int64(-1)
	for _, i := range n.running {
		at := n.jobs[i].start + n.jobs[i].predicted
		if at > n.now && n.freeAt(at) >= head.procs && (shadow < 0 || at < shadow) {
			shadow = at
		}
	}
	rest := slices.Clone(n.waiting[1:])
	if n.Order == SJBF {
		slices.SortStableFunc(rest, func(a, b int) int { return cmp.Compare(n.jobs[a].predicted, n.jobs[b].predicted) })
	}
	for _, i := range rest {
		if j := &n.jobs[i]; n.fits(j, head, shadow) {
			j.early = true
			n.startJob(i)
		}
	}
}

// fits checks every instant of a job's run at which the free processors change.
func (n *naiveReplay) fits(j, head *naiveJob, shadow int64) bool {
	instants := []int64{n.now, shadow}
	for _, i := range n.running {
		instants = append(instants, n.jobs[i].start+n.jobs[i].predicted)
	}
	for _, at := range instants {
		if at < n.now || at >= n.now+j.predicted {
			continue
		}
		free := n.freeAt(at)
		if at >= shadow && at < shadow+head.predicted {
			free -= head.procs
		}
		if free < j.procs {
			return false
		}
	}
	return true
}

// randomLog returns a log with many simultaneous events, for a machine of procs
// processors.
func randomLog(rng *rand.Rand, procs int64) *trace.Log {
	log := &trace.Log{}
	// Unit of all times: 60 is the first correction step, and the last one makes times
	// huge.
	grain := []int64{1, 1, 7, 60, 1 << 31 / 50}[rng.IntN(5)]
	crowd := 1 + rng.Int64N(12)
	at := int64(0)
	for i := range 10 + rng.IntN(60) {
		if rng.IntN(3) > 0 {
			at += grain * rng.Int64N(crowd)
		}
		run := grain * rng.Int64N(2*crowd)
		j := trace.Job{ID: int64(i), Line: i + 1, Submit: at, RunTime: run, Processors: 1 + rng.Int64N(procs),
			RequestedTime: run + grain*rng.Int64N(3*crowd), User: rng.Int64N(4)}
		switch j.RequestedProcessors = j.Processors; rng.IntN(30) {
		case 0:
			j.Processors = -1
		case 1:
			j.RequestedProcessors = -1
		case 2:
			j.RequestedProcessors = procs + 1
		case 3:
			j.Processors = procs + 1
		case 4:
			j.RunTime = -1
		case 5:
			j.RequestedTime = -1
		case 6:
			j.RequestedTime = run / 2
		case 7:
			j.RequestedProcessors = procs
		case 8, 9, 10:
			j.RequestedProcessors, j.Processors = 1, 1
		}
		log.Jobs = append(log.Jobs, j)
	}
	if rng.IntN(4) == 0 {
		rng.Shuffle(len(log.Jobs), func(i, k int) { log.Jobs[i], log.Jobs[k] = log.Jobs[k], log.Jobs[i] })
	}
	return log
}

// TestOracle compares Replay with naiveReplay on random logs, under each order, estimate
// and correction.
func TestOracle(t *testing.T) {
	early, outlived := 0, 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 5))
		procs := []int64{1, 2, 5, 16, 100, 93_312}[rng.IntN(6)]
		log := randomLog(rng, procs)
		for _, order := range []QueueOrder{FirstComeFirstServed, EASY, SJBF} {
			for _, how := range []struct {
				RuntimeEstimate
				PredictionCorrection
			}{{Asked, ByRequest}, {Known, ByRequest}, {LastTwo, ByRequest}, {LastTwo, BySteps}} {
				opt := ReplayOptions{Processors: procs, Order: order, Estimate: how.RuntimeEstimate,
					Correction: how.PredictionCorrection, AssumeRuntime: seed%3 == 0}
				p, err := Replay(log, opt)
				if err != nil {
					t.Fatal(err)
				}
				want := playNaively(log, opt)
				if len(p.Jobs) != len(want) || p.Skipped != len(log.Jobs)-len(want) {
					t.Fatalf("seed %d: %d jobs played, %d left out; want %d", seed, len(p.Jobs), p.Skipped, len(want))
				}
				for i := range want {
					got, want := outcomeText(&p.Jobs[i]), want[i].outcomeText()
					if got != want {
						t.Fatalf("seed %d, %+v:\ngot  %s\nwant %s", seed, opt, got, want)
					}
					if p.Jobs[i].Early {
						early++
					}
					outlived += p.Jobs[i].Outlived
				}
				checkFits(t, p, procs)
			}
		}
	}
	if early < 1000 || outlived < 1000 {
		t.Errorf("only %d jobs started before the head of the queue, and only %d times somebody outlived what "+
			"was expected: these logs test little", early, outlived)
	}
}

func outcomeText(o *JobOutcome) string {
	return fmt.Sprintf("job %d of %d processors, expected to take %d, starts at %d, early %t, outlived that %d times",
		o.ID, o.Procs, o.Expected, o.Start, o.Early, o.Outlived)
}

func (j *naiveJob) outcomeText() string {
	return fmt.Sprintf("job %d of %d processors, expected to take %d, starts at %d, early %t, outlived that %d times",
		j.ID, j.procs, j.firstPredicted, j.start, j.early, j.outlived)
}
