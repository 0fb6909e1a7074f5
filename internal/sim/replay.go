package sim

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/swf"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/match"
	"github.com/roost-batch/roost/negotiator/timeline"
)

// QueueOrder is who may start before whom.
type QueueOrder uint8

// The orders. In each of them the head of the queue is who was submitted first.
const (
	FirstComeFirstServed QueueOrder = iota // nobody starts before the head
	EASY                                   // who does not delay the head may, the first submitted first (Lifka 1995)
	SJBF                                   // the same, the shortest first (Tsafrir, Etsion, Feitelson 2007)
)

// RuntimeEstimate is how long a job is expected to take.
type RuntimeEstimate uint8

// The estimates.
const (
	Asked RuntimeEstimate = iota // as long as it asked for
	Known                        // as long as it takes
	// as its user's last two that have ended took, on the mean, and no longer than it
	// asked for (Tsafrir et al., §4)
	LastTwo
)

// PredictionCorrection is how long a job is taken to run that has outlived what was
// expected of it.
type PredictionCorrection uint8

// The corrections.
const (
	ByRequest PredictionCorrection = iota // as long as it asked for
	// a little longer, each time more (Tsafrir et al., §4.1), and no longer than it asked
	// for
	BySteps
)

// ReplayOptions say how a log is replayed.
type ReplayOptions struct {
	Processors    int64
	Order         QueueOrder
	Estimate      RuntimeEstimate
	Correction    PredictionCorrection
	AssumeRuntime bool // a job that asked for no time has asked for as long as it ran
}

// JobOutcome is what became of one job. Times are in seconds of the log.
type JobOutcome struct {
	swf.TraceJob
	Procs    int64 // that it takes
	Length   int64 // for which it runs: no longer than it asked for
	Expected int64 // how long it was taken to run when it was submitted
	Start    int64
	Early    bool // it started before the head of the queue
	Outlived int  // how often what was expected of it
}

// Waited is how long the job waited.
func (o *JobOutcome) Waited() int64 { return o.Start - o.Submit }

// replayTask is a job on its way.
type replayTask struct {
	*JobOutcome
	procs     int64
	requested int64 // seconds that it asked for
	predicted int64 // seconds that it is taken to run, as of now
	number    uint64
	request   match.Request
}

// waitingTask is a task that waits, with what is looked at again and again.
type waitingTask struct {
	procs, predicted int64
	number           uint64
	task             *replayTask
}

// logReplay is a replay under way.
type logReplay struct {
	ReplayOptions
	now           int64
	jobs          []JobOutcome
	submitted     int           // of the jobs
	starting      []*replayTask // at this instant, in their order
	announced     int           // how many of those have been
	ends          endHeap
	queue         []waitingTask              // in the order of submission
	shortest      []waitingTask              // SJBF: the same, the shortest first
	running       []*replayTask              // in the order in which they are taken to end
	returns       []timeline.CapacityRelease // what they give back then
	used          int64                      // their processors
	freeAfterPass int64                      // processors that were free after the last pass
	// nobody has ended since then before he was expected to, or outlived that
	unchanged bool
	// what is known of the room that is held for the head of the queue; nil if nothing is
	headReservation *match.BackfillReservation

	matcher  *match.Matcher
	snapshot match.Snapshot
	classes  map[int64]*match.RequestClass // by processors
	// by user: how long the last two took, the last first; 0: there was none
	recentRuntimes map[int64][2]int64
	reusable       []*replayTask // that have ended
	candidates     []waitingTask // memory for those of one pass, who may start before the head
}

// logOwner owns all jobs: in a replay of who came first there are no shares.
var logOwner = fairshare.Submitter{Owner: "log"}

// wallStart is the second of the virtual clock at which the log begins: no instant is 0,
// which means that nobody knows.
const wallStart = 1_000_000

// Result is what a replay came to.
type Result struct {
	Jobs []JobOutcome // in the order of their submission; of those at the same time, by number
	// jobs of the log that had no length or no size, or one that is larger than the
	// machine, or asked for no time
	Skipped int
	// SkippedNoRequest is how many of those would have been played if they had asked for
	// a time.
	SkippedNoRequest int
	Events           int64
	Digest           uint64 // of all events in their order: two replays with the same are the same
}

// Replay plays the jobs of a log.
func Replay(log *swf.TraceLog, opt ReplayOptions) (*Result, error) {
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

// playableJobs lists the jobs of a log that can be played, in the order in which they
// are.
func (p *Result) playableJobs(log *swf.TraceLog, opt *ReplayOptions) {
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

// jobOutcome is a job as it is played, if it has a length, and a size that the machine
// has. A log may know only one of how many processors it asked for and got: what it asked
// for is what a scheduler knows.
func jobOutcome(j *swf.TraceJob, opt *ReplayOptions) (o JobOutcome, fits bool) {
	o = JobOutcome{TraceJob: *j, Procs: j.RequestedProcessors, Length: j.RunTime, Start: -1}
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

// submitNext makes the task of the next job.
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

// handleEvent plays an event.
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

// enqueueTask plays a submission. Under EASY the published schedules do not look at the
// queue for a job that does not fit: not even at its head, for which a job may have ended
// at that instant.
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

// correctionSteps are by how much an expectation that was too short is put off, in
// seconds, the first time, the second, and so on (Tsafrir et al., §4.1).
var correctionSteps = [...]int64{60, 5 * 60, 15 * 60, 30 * 60, 3600, 2 * 3600, 5 * 3600, 10 * 3600, 20 * 3600,
	50 * 3600, 100 * 3600}

// schedulePrediction notes when a task will have outlived what is expected of it.
func (r *logReplay) schedulePrediction(t *replayTask) {
	if t.predicted < t.Length {
		r.ends.push(t.expectedEnd(), predictionExceeded, t)
	}
}

// expectedRuntime is how long a job is taken to run when it is submitted.
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

// processorResources is what so many processors are.
func processorResources(procs int64) roost.Resources {
	return roost.Resources{CPU: 1000 * roost.MilliCPU(procs)}
}

// insertRunning puts a task among those that run, behind all that are taken to end no
// later.
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

// firstEndingFrom is the place of the first of those that run who is taken to end at an
// instant or later.
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

// expectedEnd is when a running task is taken to have ended.
func (t *replayTask) expectedEnd() int64 { return t.Start + t.predicted }
