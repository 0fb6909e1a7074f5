package sim

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/swf"
	"github.com/roost-batch/roost/negotiator/forecast"
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
	Unasked    bool // a job that asked for no time has asked for as long as it ran
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
	procs   int64
	ask     int64 // seconds that it asked for
	guess   int64 // seconds that it is taken to run, as of now
	number  uint64
	request match.Request
}

// waiter is a task that waits, with what is looked at again and again.
type waiter struct {
	procs, guess int64
	number       uint64
	task         *task
}

// replay is a replay under way.
type replay struct {
	Options
	now       int64
	jobs      []Outcome
	submitted int     // of the jobs
	starting  []*task // at this instant, in their order
	told      int     // how many of those have been
	agenda    agenda
	queue     []waiter           // in the order of submission
	shortest  []waiter           // SJBF: the same, the shortest first
	running   []*task            // in the order in which they are taken to end
	returns   []forecast.Release // what they give back then
	used      int64              // their processors
	left      int64              // processors that were free after the last pass
	settled   bool               // nobody has ended since then before he was expected to, or outlived that
	head      *match.Head        // what is known of the room that is held for the head of the queue; nil if nothing is

	matcher  *match.Matcher
	snapshot match.Snapshot
	classes  map[int64]*match.Class // by processors
	recent   map[int64][2]int64     // by user: how long the last two took, the last first; 0: there was none
	spare    []*task                // that have ended
	gap      []waiter               // memory for those of one pass, who may start before the head
}

// owner owns all jobs: in a replay of who came first there are no shares.
var owner = share.Submitter{Owner: "log"}

// epoch is the second of the virtual clock at which the log begins: no instant is 0, which means that nobody knows.
const epoch = 1_000_000

// Played is what a replay came to.
type Played struct {
	Jobs    []Outcome // in the order of their submission; of those at the same time, by number
	LeftOut int       // jobs of the log that had no length or no size, or one that is larger than the machine, or asked for no time
	// NoRequest is how many of those would have been played if they had asked for a time.
	NoRequest int
	Events    int64
	Digest    uint64 // of all events in their order: two replays with the same are the same
}

// Replay plays the jobs of a log.
func Replay(log *swf.Log, opt Options) (*Played, error) {
	if opt.Processors < 1 || opt.Processors > math.MaxInt32 {
		return nil, fmt.Errorf("%w: a machine of %d processors", roost.Invalid, opt.Processors)
	}
	p := &Played{}
	p.take(log, &opt)
	r := newReplay(opt, p.Jobs)
	d := newDigest()
	for {
		e, ok := r.next()
		if !ok {
			break
		}
		r.now = e.at
		p.Events++
		d.add(uint64(e.at))
		d.add(e.task.number<<2 | uint64(e.kind()))
		if err := r.happen(&e); err != nil {
			return nil, fmt.Errorf("job %d of line %d: %w", e.task.ID, e.task.Line, err)
		}
	}
	p.Digest = uint64(d)
	return p, nil
}

// take lists the jobs of a log that can be played, in the order in which they are.
func (p *Played) take(log *swf.Log, opt *Options) {
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
	p.Jobs = make([]Outcome, 0, len(order))
	for _, one := range order {
		switch o, fits := outcome(&log.Jobs[one.at], opt); {
		case fits && o.Request > 0:
			p.Jobs = append(p.Jobs, o)
		case fits:
			p.NoRequest++
		}
	}
	p.LeftOut = len(log.Jobs) - len(p.Jobs)
}

// outcome is a job as it is played, if it has a length, and a size that the machine has. A log may know only one of how many processors it asked for and got: what it asked
// for is what a scheduler knows.
func outcome(j *swf.Job, opt *Options) (o Outcome, fits bool) {
	o = Outcome{Job: *j, Procs: j.Requested, Length: j.Run, Start: -1}
	if o.Procs <= 0 {
		o.Procs = j.Procs
	}
	if o.Request <= 0 && opt.Unasked {
		o.Request = j.Run
	}
	if o.Request > 0 {
		o.Length = min(o.Length, o.Request)
	}
	return o, o.Procs > 0 && max(o.Procs, j.Procs) <= opt.Processors && o.Length > 0
}

func newReplay(opt Options, jobs []Outcome) *replay {
	r := &replay{Options: opt, jobs: jobs, matcher: match.NewMatcher(), classes: map[int64]*match.Class{}, recent: map[int64][2]int64{}}
	ad := classad.New()
	ad.SetString(roost.AttrName, "machine")
	ad.SetInt(roost.AttrTotalCpus, opt.Processors)
	ad.SetInt(roost.AttrCpus, opt.Processors)
	r.snapshot = match.Snapshot{Machines: []*match.Machine{match.NewMachine("machine", 1, 1, ad)}, Backfill: match.Backfill{Mode: match.EASY}}
	return r
}

// submit makes the task of the next job.
func (r *replay) submit() (t *task) {
	if last := len(r.spare) - 1; last >= 0 {
		t, r.spare = r.spare[last], r.spare[:last]
	} else {
		t = &task{}
	}
	o := &r.jobs[r.submitted]
	t.Outcome, t.procs, t.ask, t.number = o, o.Procs, o.Request, uint64(r.submitted)
	r.submitted++
	return t
}

// happen plays an event.
func (r *replay) happen(e *event) error {
	t := e.task
	switch e.kind() {
	case submission:
		return r.enqueue(t)
	case end:
		if r.remove(t); t.over() != r.now {
			r.settled = false
			if r.head != nil {
				r.head.Freed(epoch+t.over(), t.request.Class.Resources)
			}
		}
		two := r.recent[t.User]
		r.recent[t.User] = [2]int64{t.Length, two[0]}
		r.spare = append(r.spare, t)
		r.pass(false)
	case outlived:
		r.remove(t)
		over := epoch + t.over()
		t.guess = t.ask
		if t.Outlived++; r.Correction == BySteps && t.Outlived <= len(corrections) {
			t.guess = min(t.Expected+corrections[t.Outlived-1], t.ask)
		}
		r.insert(t)
		if r.settled = false; r.head != nil && !r.head.Delayed(over, epoch+t.over()) {
			r.head = nil
		}
		r.watch(t)
	case start:
		r.agenda.plan(r.now+t.Length, end, t)
		r.watch(t)
	}
	return nil
}

// enqueue plays a submission. Under EASY the published schedules do not look at the queue for a job that does not fit: not even at its head, for which a job may
// have ended at that instant.
func (r *replay) enqueue(t *task) error {
	t.Expected = r.expect(t)
	t.guess = t.Expected
	class, err := r.class(t.procs)
	if err != nil {
		return err
	}
	t.request = match.Request{
		Key: match.Key{Schedd: "log", ID: t.number}, Submitter: owner, Band: roost.Batch, Oldest: int64(t.number) + 1, Wanted: 1, Class: class,
	}
	r.join(t)
	if r.Order != EASY || t.procs <= r.free() {
		r.pass(true)
	}
	return nil
}

// corrections are by how much an expectation that was too short is put off, in seconds, the first time, the second, and so on (Tsafrir et al., §4.1).
var corrections = [...]int64{60, 5 * 60, 15 * 60, 30 * 60, 3600, 2 * 3600, 5 * 3600, 10 * 3600, 20 * 3600, 50 * 3600, 100 * 3600}

// watch notes when a task will have outlived what is expected of it.
func (r *replay) watch(t *task) {
	if t.guess < t.Length {
		r.agenda.plan(t.over(), outlived, t)
	}
}

// expect is how long a job is taken to run when it is submitted.
func (r *replay) expect(t *task) int64 {
	switch {
	case r.Estimate == Known:
		return t.Length
	case r.Estimate == LastTwo:
		if two := r.recent[t.User]; two[1] > 0 {
			return min(max((two[0]+two[1])/2, 1), t.ask)
		}
	}
	return t.ask
}

func (r *replay) class(procs int64) (*match.Class, error) {
	if c := r.classes[procs]; c != nil {
		return c, nil
	}
	c, err := match.NewClass("", owner, roost.Batch, sized(procs))
	r.classes[procs] = c
	return c, err
}

// sized is what so many processors are.
func sized(procs int64) roost.Resources { return roost.Resources{CPU: 1000 * roost.MilliCPU(procs)} }

// insert puts a task among those that run, behind all that are taken to end no later.
func (r *replay) insert(t *task) {
	over := epoch + t.over()
	i := r.firstFrom(over + 1)
	r.running = slices.Insert(r.running, i, t)
	r.returns = slices.Insert(r.returns, i, forecast.Release{At: over, Resources: t.request.Class.Resources})
	r.used += t.procs
}

func (r *replay) remove(t *task) {
	i := r.firstFrom(epoch + t.over())
	for r.running[i] != t {
		i++
	}
	r.running = slices.Delete(r.running, i, i+1)
	r.returns = slices.Delete(r.returns, i, i+1)
	r.used -= t.procs
}

// firstFrom is the place of the first of those that run who is taken to end at an instant or later.
func (r *replay) firstFrom(at int64) int {
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

// over is when a running task is taken to have ended.
func (t *task) over() int64 { return t.Start + t.guess }
