package sim

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/sim/trace"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/match"
	"github.com/roost-batch/roost/negotiator/timeline"
)

// QueueOrder says which jobs may start before others.
type QueueOrder uint8

// The orders. In each of them the head of the queue is the job that was submitted first.
const (
	FirstComeFirstServed QueueOrder = iota // no job starts before the head
	// backfill in order of submission: what does not delay the head may start (Lifka
	// 1995)
	EASY
	// EASY, but the shortest job is backfilled first (Tsafrir, Etsion, Feitelson 2007)
	SJBF
)

// RuntimeEstimate says which run time the scheduler expects of a job.
type RuntimeEstimate uint8

// The estimates.
const (
	Asked RuntimeEstimate = iota // the time that the job asked for
	Known                        // the time that the job really takes
	// the mean of the last two ended jobs of the same user, and at most what the job
	// asked for (Tsafrir et al., §4)
	LastTwo
)

// PredictionCorrection says which run time a job gets that has exceeded its estimate.
type PredictionCorrection uint8

// The corrections.
const (
	ByRequest PredictionCorrection = iota // the time that the job asked for
	// a step more, a larger one each time (Tsafrir et al., §4.1), and at most what the
	// job asked for
	BySteps
)

// ReplayOptions holds the settings of a replay.
type ReplayOptions struct {
	Processors    int64
	Order         QueueOrder
	Estimate      RuntimeEstimate
	Correction    PredictionCorrection
	AssumeRuntime bool // a job without a requested time gets its run time as the requested time
}

// JobOutcome is what the replay did with one job. Times are in seconds of the log.
type JobOutcome struct {
	trace.Job
	Procs    int64 // processors that the job takes
	Length   int64 // seconds that the job runs; at most what it asked for
	Expected int64 // the estimate of the run time at submission, in seconds
	Start    int64
	Early    bool // the job was backfilled: it started before the head of the queue
	Outlived int  // how often the job exceeded its estimate
}

// Waited returns how many seconds the job waited.
func (o *JobOutcome) Waited() int64 { return o.Start - o.Submit }

// replayTask is a submitted job that has not ended.
type replayTask struct {
	*JobOutcome
	procs     int64
	requested int64 // seconds that the job asked for
	predicted int64 // seconds that the job is expected to run, as of now
	number    uint64
	request   match.Request
}

// waitingTask is a queued task together with the fields that every pass reads.
type waitingTask struct {
	procs, predicted int64
	number           uint64
	task             *replayTask
}

// logReplay is the state of a replay.
type logReplay struct {
	ReplayOptions
	now           int64
	jobs          []JobOutcome
	submitted     int           // number of jobs submitted so far
	starting      []*replayTask // tasks that start at this instant, in order
	announced     int           // how many of starting have had their event
	ends          endHeap
	queue         []waitingTask              // in the order of submission
	shortest      []waitingTask              // for SJBF: the queue with the shortest job first
	running       []*replayTask              // in the order of their expected ends
	returns       []timeline.CapacityRelease // what each task of running returns at its expected end
	used          int64                      // processors of the running tasks
	freeAfterPass int64                      // processors that were free after the last pass
	// since the last pass no task has ended early or exceeded its estimate
	unchanged bool
	// the matcher's reservation for the head of the queue; nil if there is none
	headReservation *match.BackfillReservation

	matcher  *match.Matcher
	snapshot match.Snapshot
	classes  map[int64]*match.RequestClass // by number of processors
	// by user: run times of the last two ended jobs, the newest first; 0 means none
	recentRuntimes map[int64][2]int64
	reusable       []*replayTask // tasks that have ended, whose memory is used again
	candidates     []waitingTask // scratch memory of one pass: the candidates for backfill
}

// logOwner is the submitter of all jobs: a replay by submission order has no shares.
var logOwner = fairshare.Submitter{Owner: "log"}

// wallStart is the second of the virtual clock at which the log begins. It is not 0,
// because an instant of 0 means unknown.
const wallStart = 1_000_000

// Result is the outcome of a replay.
type Result struct {
	Jobs []JobOutcome // in the order of submission; at equal times by job number
	// Skipped counts the jobs that were left out: they had no run time, no size or no
	// requested time, or were larger than the machine.
	Skipped int
	// SkippedNoRequest counts those of Skipped that only lacked a requested time.
	SkippedNoRequest int
	Events           int64
	Digest           uint64 // of all events in order: equal digests mean equal replays
}

// Replay replays the jobs of a log.
func Replay(log *trace.Log, opt ReplayOptions) (*Result, error) {
	if opt.Processors < 1 || opt.Processors > math.MaxInt32 {
		return nil, fmt.Errorf("%w: a machine of %d processors", roost.Invalid, opt.Processors)
	}
	p := &Result{}
	p.playableJobs(log, &opt)
	r := newReplay(opt, p.Jobs)
	d := newDigest()
	for {
		e, ok := r.nextEvent()
		if !ok {
			break
		}
		r.now = e.at
		p.Events++
		d.add(uint64(e.at))
		d.add(e.task.number<<2 | uint64(e.kind()))
		if err := r.handleEvent(&e); err != nil {
			return nil, fmt.Errorf("job %d of line %d: %w", e.task.ID, e.task.Line, err)
		}
	}
	p.Digest = uint64(d)
	return p, nil
}

// playableJobs fills p.Jobs with the jobs that can be replayed, in the order of
// submission.
func (p *Result) playableJobs(log *trace.Log, opt *ReplayOptions) {
	type place struct {
		submit, id int64
		at         int
	}
	order := make([]place, len(log.Jobs))
	for i := range log.Jobs {
		order[i] = place{log.Jobs[i].Submit, log.Jobs[i].ID, i}
	}
	slices.SortFunc(order, func(a, b place) int {
		if a.submit != b.submit {
			return cmp.Compare(a.submit, b.submit)
		}
		return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.at, b.at))
	})
	p.Jobs = make([]JobOutcome, 0, len(order))
	for _, one := range order {
		switch o, fits := jobOutcome(&log.Jobs[one.at], opt); {
		case fits && o.RequestedTime > 0:
			p.Jobs = append(p.Jobs, o)
		case fits:
			p.SkippedNoRequest++
		}
	}
	p.Skipped = len(log.Jobs) - len(p.Jobs)
}

// jobOutcome returns the job as the replay starts with it, and whether it can be
// replayed. A log may have only one of the requested and the used processors. The
// requested number comes first, because it is what a scheduler knows.
func jobOutcome(j *trace.Job, opt *ReplayOptions) (o JobOutcome, fits bool) {
	o = JobOutcome{Job: *j, Procs: j.RequestedProcessors, Length: j.RunTime, Start: -1}
	if o.Procs <= 0 {
		o.Procs = j.Processors
	}
	if o.RequestedTime <= 0 && opt.AssumeRuntime {
		o.RequestedTime = j.RunTime
	}
	if o.RequestedTime > 0 {
		o.Length = min(o.Length, o.RequestedTime)
	}
	return o, o.Procs > 0 && max(o.Procs, j.Processors) <= opt.Processors && o.Length > 0
}

func newReplay(opt ReplayOptions, jobs []JobOutcome) *logReplay {
	r := &logReplay{ReplayOptions: opt, jobs: jobs, matcher: match.NewMatcher(),
		classes: map[int64]*match.RequestClass{}, recentRuntimes: map[int64][2]int64{}}
	ad := classad.New()
	ad.SetString(roost.AttrName, "machine")
	ad.SetInt(roost.AttrTotalCpus, opt.Processors)
	ad.SetInt(roost.AttrCpus, opt.Processors)
	r.snapshot = match.Snapshot{Machines: []*match.Machine{match.NewMachine("machine", 1, 1, ad)},
		Backfill: match.BackfillSettings{Mode: match.EASYBackfill}}
	return r
}

// submitNext returns the task of the next job.
func (r *logReplay) submitNext() (t *replayTask) {
	if last := len(r.reusable) - 1; last >= 0 {
		t, r.reusable = r.reusable[last], r.reusable[:last]
	} else {
		t = &replayTask{}
	}
	o := &r.jobs[r.submitted]
	t.JobOutcome, t.procs, t.requested, t.number = o, o.Procs, o.RequestedTime, uint64(r.submitted)
	r.submitted++
	return t
}

// handleEvent applies an event.
func (r *logReplay) handleEvent(e *replayEvent) error {
	t := e.task
	switch e.kind() {
	case jobSubmission:
		return r.enqueueTask(t)
	case taskEnd:
		if r.removeRunning(t); t.expectedEnd() != r.now {
			r.unchanged = false
			if r.headReservation != nil {
				r.headReservation.AddFreed(wallStart+t.expectedEnd(), t.request.Class.Resources)
			}
		}
		two := r.recentRuntimes[t.User]
		r.recentRuntimes[t.User] = [2]int64{t.Length, two[0]}
		r.reusable = append(r.reusable, t)
		r.runCycle(false)
	case predictionExceeded:
		r.removeRunning(t)
		over := wallStart + t.expectedEnd()
		t.predicted = t.requested
		if t.Outlived++; r.Correction == BySteps && t.Outlived <= len(correctionSteps) {
			t.predicted = min(t.Expected+correctionSteps[t.Outlived-1], t.requested)
		}
		r.insertRunning(t)
		if r.unchanged = false; r.headReservation != nil &&
			!r.headReservation.AddDelayed(over, wallStart+t.expectedEnd()) {
			r.headReservation = nil
		}
		r.schedulePrediction(t)
	case taskStart:
		r.ends.push(r.now+t.Length, taskEnd, t)
		r.schedulePrediction(t)
	}
	return nil
}

// enqueueTask applies a submission. Under EASY the published schedules do not run a pass
// for a new job that does not fit. They do not even look at the head of the queue,
// although a job may have ended at the same instant.
func (r *logReplay) enqueueTask(t *replayTask) error {
	t.Expected = r.expectedRuntime(t)
	t.predicted = t.Expected
	class, err := r.classOfSize(t.procs)
	if err != nil {
		return err
	}
	t.request = match.Request{
		Key: match.RequestKey{Schedd: "log", ID: t.number}, Submitter: logOwner, Band: roost.BatchBand,
		Oldest: int64(t.number) + 1, Wanted: 1, Class: class,
	}
	r.appendToQueue(t)
	if r.Order != EASY || t.procs <= r.freeProcessors() {
		r.runCycle(true)
	}
	return nil
}

// correctionSteps are the seconds by which exceeded estimates grow: the first time, the
// second, and so on. They follow Tsafrir et al., §4.1.
var correctionSteps = [...]int64{60, 5 * 60, 15 * 60, 30 * 60, 3600, 2 * 3600, 5 * 3600, 10 * 3600, 20 * 3600,
	50 * 3600, 100 * 3600}

// schedulePrediction plans the event at which a task exceeds its estimate.
func (r *logReplay) schedulePrediction(t *replayTask) {
	if t.predicted < t.Length {
		r.ends.push(t.expectedEnd(), predictionExceeded, t)
	}
}

// expectedRuntime returns the estimate in seconds that a job gets at submission.
func (r *logReplay) expectedRuntime(t *replayTask) int64 {
	switch {
	case r.Estimate == Known:
		return t.Length
	case r.Estimate == LastTwo:
		if two := r.recentRuntimes[t.User]; two[1] > 0 {
			return min(max((two[0]+two[1])/2, 1), t.requested)
		}
	}
	return t.requested
}

func (r *logReplay) classOfSize(procs int64) (*match.RequestClass, error) {
	if c := r.classes[procs]; c != nil {
		return c, nil
	}
	c, err := match.NewClass("", logOwner, roost.BatchBand, processorResources(procs))
	r.classes[procs] = c
	return c, err
}

// processorResources returns the resources of that many processors.
func processorResources(procs int64) roost.Resources {
	return roost.Resources{CPU: 1000 * roost.MilliCPU(procs)}
}

// insertRunning puts a task behind all running tasks with the same or an earlier expected
// end.
func (r *logReplay) insertRunning(t *replayTask) {
	over := wallStart + t.expectedEnd()
	i := r.firstEndingFrom(over + 1)
	r.running = slices.Insert(r.running, i, t)
	r.returns = slices.Insert(r.returns, i, timeline.CapacityRelease{At: over, Resources: t.request.Class.Resources})
	r.used += t.procs
}

func (r *logReplay) removeRunning(t *replayTask) {
	i := r.firstEndingFrom(wallStart + t.expectedEnd())
	for r.running[i] != t {
		i++
	}
	r.running = slices.Delete(r.running, i, i+1)
	r.returns = slices.Delete(r.returns, i, i+1)
	r.used -= t.procs
}

// firstEndingFrom returns the index of the first running task whose expected end is not
// before an instant.
func (r *logReplay) firstEndingFrom(at int64) int {
	low, high := 0, len(r.returns)
	for low < high {
		if middle := (low + high) / 2; r.returns[middle].At < at {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// expectedEnd returns the second at which a running task is expected to end.
func (t *replayTask) expectedEnd() int64 { return t.Start + t.predicted }
