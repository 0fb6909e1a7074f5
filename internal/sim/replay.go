package sim

import (
	"cmp"
	"container/heap"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/swf"
	"github.com/roost-batch/roost/negotiator/match"
	"github.com/roost-batch/roost/negotiator/share"
)

// Order is who may start before whom.
type Order uint8

// The orders. In each of them the head of the queue is who was submitted first.
const (
	FCFS Order = iota // nobody starts before the head
	EASY              // who does not delay the head may, the first submitted first (Lifka 1995)
	SJBF              // the same, the shortest first (Tsafrir, Etsion, Feitelson 2007)
)

// Estimate is how long a job is expected to take.
type Estimate uint8

// The estimates.
const (
	Asked   Estimate = iota // as long as it asked for
	Known                   // as long as it takes
	LastTwo                 // as its user's last two that have ended took, on the mean, and no longer than it asked for (Tsafrir et al., §4)
)

// Correction is how long a job is taken to run that has outlived what was expected of it.
type Correction uint8

// The corrections.
const (
	ByRequest Correction = iota // as long as it asked for
	BySteps                     // a little longer, each time more (Tsafrir et al., §4.1), and no longer than it asked for
)

// Options say how a log is replayed.
type Options struct {
	Processors int64
	Order      Order
	Estimate   Estimate
	Correction Correction
}

// Outcome is what became of one job. Times are in seconds of the log.
type Outcome struct {
	swf.Job
	Procs    int64 // that it takes
	Length   int64 // for which it runs: no longer than it asked for
	Expected int64 // how long it was taken to run when it was submitted
	Start    int64
	Early    bool // it started before the head of the queue
	Outlived int  // how often what was expected of it
}

// Waited is how long the job waited.
func (o *Outcome) Waited() int64 { return o.Start - o.Submit }

// task is a job on its way.
type task struct {
	*Outcome
	number  uint64 // in the order of submission
	ask     int64  // seconds that it asked for
	guess   int64  // seconds that it is taken to run, as of now
	request match.Request
}

// replay is a replay under way.
type replay struct {
	Options
	now     int64
	events  events
	planned int64
	queue   []*task // in the order of submission
	running []*task // in the order in which they are taken to end
	used    int64   // their processors
	left    int64   // processors that were free after the last pass
	stirred bool    // since then somebody has outlived what was expected of him, or has ended

	matcher  *match.Matcher
	snapshot match.Snapshot
	classes  map[int64]*match.Class // by processors
	recent   map[int64][2]int64     // by user: how long the last two took, the last first; 0: there was none
	claims   []match.Claim          // the machine's
}

// owner owns all jobs: in a replay of who came first there are no shares.
var owner = share.Submitter{Owner: "log"}

// epoch is the second of the virtual clock at which the log begins: no instant is 0, which means that nobody knows.
const epoch = 1_000_000

// Played is what a replay came to.
type Played struct {
	Jobs    []Outcome // in the order of their submission; of those at the same time, by number
	LeftOut int       // jobs of the log that had no length or no size, or one that is larger than the machine
	Events  int64
	Digest  uint64 // of all events in their order: two replays with the same are the same
}

// Replay plays the jobs of a log.
func Replay(log *swf.Log, opt Options) (*Played, error) {
	if opt.Processors < 1 || opt.Processors > math.MaxInt32 {
		return nil, fmt.Errorf("%w: a machine of %d processors", roost.Invalid, opt.Processors)
	}
	p := &Played{}
	for i := range log.Jobs {
		if o, ok := outcome(&log.Jobs[i], opt.Processors); ok {
			p.Jobs = append(p.Jobs, o)
		}
	}
	p.LeftOut = len(log.Jobs) - len(p.Jobs)
	slices.SortStableFunc(p.Jobs, func(a, b Outcome) int { return cmp.Or(cmp.Compare(a.Submit, b.Submit), cmp.Compare(a.ID, b.ID)) })
	r := newReplay(opt)
	tasks := make([]task, len(p.Jobs))
	for i := range tasks {
		t := &tasks[i]
		t.Outcome, t.number, t.ask = &p.Jobs[i], uint64(i), p.Jobs[i].Request
		r.plan(event{at: t.Submit, kind: submission, task: t})
	}
	digest := fnv.New64a()
	for len(r.events) > 0 {
		e := heap.Pop(&r.events).(event)
		r.now = e.at
		p.Events++
		var what [24]byte
		binary.LittleEndian.PutUint64(what[:], uint64(e.at))
		binary.LittleEndian.PutUint64(what[8:], uint64(e.kind))
		binary.LittleEndian.PutUint64(what[16:], e.task.number)
		digest.Write(what[:])
		if err := r.happen(e); err != nil {
			return nil, fmt.Errorf("job %d of line %d: %w", e.task.ID, e.task.Line, err)
		}
	}
	p.Digest = digest.Sum64()
	return p, nil
}

// outcome is a job as it is played, if it can be. A log may know only one of how long it asked for and ran, and of how many processors it asked for and got.
func outcome(j *swf.Job, procs int64) (o Outcome, ok bool) {
	o = Outcome{Job: *j, Procs: j.Procs, Length: j.Run, Start: -1}
	if o.Procs <= 0 {
		o.Procs = j.Requested
	}
	if j.Request > 0 {
		o.Length = min(o.Length, j.Request)
	}
	return o, o.Procs > 0 && o.Procs <= procs && o.Length > 0 && j.Request > 0
}

func newReplay(opt Options) *replay {
	r := &replay{Options: opt, matcher: match.NewMatcher(), classes: map[int64]*match.Class{}, recent: map[int64][2]int64{}}
	ad := classad.New()
	ad.SetString(roost.AttrName, "machine")
	ad.SetInt(roost.AttrTotalCpus, opt.Processors)
	ad.SetInt(roost.AttrCpus, opt.Processors)
	ad.SetBool(roost.AttrRequirements, true)
	r.snapshot = match.Snapshot{Machines: []*match.Machine{match.NewMachine("machine", 1, 1, ad)}, Backfill: match.Backfill{Mode: match.EASY}}
	return r
}

// happen plays an event.
func (r *replay) happen(e event) error {
	t := e.task
	switch e.kind {
	case submission:
		t.Expected = r.expect(t)
		t.guess = t.Expected
		class, err := r.class(t.Procs)
		if err != nil {
			return err
		}
		t.request = match.Request{
			Key: match.Key{Schedd: "log", ID: t.number}, Submitter: owner, Band: roost.Batch, Oldest: (epoch + t.Submit) * int64(time.Second), Wanted: 1,
			Class: class,
		}
		r.queue = append(r.queue, t)
		r.pass()
	case end:
		r.remove(t)
		two := r.recent[t.User]
		r.recent[t.User] = [2]int64{t.Length, two[0]}
		r.pass()
	case outlived:
		r.remove(t)
		t.guess = t.ask
		if t.Outlived++; r.Correction == BySteps && t.Outlived <= len(corrections) {
			t.guess = min(t.Expected+corrections[t.Outlived-1], t.ask)
		}
		r.insert(t)
		r.watch(t)
	case start:
		r.plan(event{at: r.now + t.Length, kind: end, task: t})
		r.watch(t)
	}
	return nil
}

// corrections are by how much an expectation that was too short is put off, in seconds, the first time, the second, and so on (Tsafrir et al., §4.1).
var corrections = [...]int64{60, 5 * 60, 15 * 60, 30 * 60, 3600, 2 * 3600, 5 * 3600, 10 * 3600, 20 * 3600, 50 * 3600, 100 * 3600}

// watch notes when a task will have outlived what is expected of it.
func (r *replay) watch(t *task) {
	if t.guess < t.Length {
		r.plan(event{at: t.over(), kind: outlived, task: t})
	}
}

// expect is how long a job is taken to run when it is submitted.
func (r *replay) expect(t *task) int64 {
	switch two := r.recent[t.User]; {
	case r.Estimate == Known:
		return t.Length
	case r.Estimate == LastTwo && two[1] > 0:
		return min(max((two[0]+two[1])/2, 1), t.ask)
	}
	return t.ask
}

func (r *replay) class(procs int64) (*match.Class, error) {
	if c := r.classes[procs]; c != nil {
		return c, nil
	}
	c, err := match.NewClass("", owner, roost.Batch, roost.Resources{CPU: 1000 * roost.MilliCPU(procs)})
	r.classes[procs] = c
	return c, err
}

// insert puts a task among those that run.
func (r *replay) insert(t *task) {
	i, _ := slices.BinarySearchFunc(r.running, t.over()+1, func(o *task, at int64) int { return cmp.Compare(o.over(), at) })
	r.running = slices.Insert(r.running, i, t)
	r.used += t.Procs
}

func (r *replay) remove(t *task) {
	i := slices.Index(r.running, t)
	r.running = slices.Delete(r.running, i, i+1)
	r.used -= t.Procs
	r.stirred = true
}

// over is when a running task is taken to have ended.
func (t *task) over() int64 { return t.Start + t.guess }
