package queue

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// maxMachineFailures is after how many attempts in a row that a machine spoiled a task is held instead of tried again.
const maxMachineFailures = 5

// oneTrouble is for how long after a failure others are taken to have the same cause, and do not count: a machine whose disk is full spoils five attempts in a
// tenth of a second, and the sixth goes well on another.
const oneTrouble = 10 * time.Second

// maxRuns is after how many attempts a task is held that has them counted (OpenPBS, qsub -W run_count).
const maxRuns = 20

// Apply folds an event into the state. It panics on one that the state does not allow: what stands in the log was decided on this very state.
func (q *Queue) Apply(e Event) {
	q.at = e.Time
	if e.What == Submitted {
		q.admit(e)
		q.register(q.jobs[e.Job])
		return
	}
	if e.What == Returned {
		q.returned(e)
		return
	}
	j := q.jobs[e.Job]
	if j == nil {
		panic(fmt.Sprintf("queue: %v of job %d, which is not there", e.What, e.Job))
	}
	switch e.What {
	case Assigned:
		q.assigned(j, e)
	case Checkpointed, CheckpointFailed, CheckpointBad:
		q.checkpointed(j, e)
	case Started:
		r := q.liveOne(j, e)
		r.started, r.place = e.Time, e.Place
		if j.began == 0 {
			j.began = e.Time
		}
		q.transition(j, e.Index, roost.Running)
		q.ripen(j)
	case OwnerBack, OwnerAway:
		q.stood(j, e)
	case Ended:
		q.ended(j, e)
		q.settleAll(j)
	case Lost:
		q.lost(j, e)
		q.settleAll(j)
	case Held, Released, RemovalRequested, Dropped, Retried, Suspended, Resumed, Requeued:
		j.believe(e)
		q.each(j, e, q.changeOf(j, e))
	case Unblocked:
		q.unblocked(j)
	case Signalled: // a word to its processes, and none of ours
	case Admitted:
		delete(q.unasked, j.seq)
	case Altered:
		q.altered(j, e)
	case Ordered:
		q.ordered(j, e)
	case RunRequested:
		q.runRequested(j, e)
	case RunDenied:
		q.runDenied(j, e)
	case Purged:
		q.purge(j)
		return
	default:
		panic(fmt.Sprintf("queue: event %v", e.What))
	}
	q.contend(j)
	q.note(j)
}

// admit takes a job in.
func (q *Queue) admit(e Event) {
	s := e.Submission
	ad, err := classad.Parse(s.Ad)
	if err != nil {
		panic(fmt.Sprintf("queue: the ad of job %d: %v", e.Job, err))
	}
	p, err := readPlan(ad)
	if err != nil {
		panic(fmt.Sprintf("queue: the ad of job %d: %v", e.Job, err))
	}
	j := &job{seq: e.Job, sub: s, plan: p, submitted: e.Time, since: e.Time, rank: e.Job, due: p.startAfter == 0}
	j.altered, _ = ad.Int(roost.AttrAlterations)
	indexes, _ := ad.Str(roost.AttrArrayIndex)
	j.indexes = indexesOf(indexes, s.Count/p.stride())
	j.state = make([]roost.TaskState, s.Count)
	q.lastSeq = max(q.lastSeq, e.Job)
	q.jobs[j.seq] = j
	if s.Unasked {
		q.unasked[j.seq] = true
	}
	q.keys[s.Key] = append(q.keys[s.Key], j.seq)
	q.classify(j)
	for i := range j.state {
		j.class(i).open++
	}
	q.depend(j)
	if !j.due {
		q.timed[j.seq] = true
	}
	first := roost.Idle
	if p.hold {
		first = roost.Held
	} else if j.blocked() {
		first = roost.Blocked
	}
	for i := range j.state {
		j.state[i] = first
	}
	j.counts[first] = s.Count
	j.form()
	q.countOpen(j, s.Count)
	q.changes += s.Count
	if first == roost.Idle {
		q.fill(j)
	}
	q.note(j)
}

// attrArray marks jobs that were submitted as several tasks, though it may be one ("0-0").
const attrArray = "Array"

// classify parts a job's tasks into classes, packs its columns and drops what is kept twice.
func (q *Queue) classify(j *job) {
	var split []Column
	j.columns = make(map[string]*packed, len(j.sub.Columns))
	for _, c := range j.sub.Columns {
		j.columns[c.Name] = pack(c.Values)
		if slices.Contains(overriding, c.Name) {
			split = append(split, c)
		}
	}
	if len(split) == 0 && j.stride() == 1 {
		q.addClass(j, &j.plan)
		return
	}
	j.sorts = map[string]int{}
	j.classOf = make([]uint16, len(j.state))
	for i := range j.state {
		key := j.sort(i)
		n, ok := j.sorts[key]
		if !ok {
			p := j.plan
			for _, c := range split {
				if err := p.override(c.Name, c.Values[i]); err != nil {
					panic(fmt.Sprintf("queue: job %d: %v", j.seq, err))
				}
			}
			if j.stride() > 1 {
				p.subjob = i / j.stride()
			}
			n = len(j.classes)
			j.sorts[key] = n
			q.addClass(j, &p)
		}
		j.classOf[i] = uint16(n)
	}
}

// sort is what tells a task from others of its job that ask for something else.
func (j *job) sort(i int) string {
	var key strings.Builder
	if j.stride() > 1 {
		fmt.Fprintf(&key, "%d ", i/j.stride())
	}
	for _, c := range j.sub.Columns {
		if slices.Contains(overriding, c.Name) {
			fmt.Fprintf(&key, "%q ", c.Values[i])
		}
	}
	return key.String()
}

// addClass adds a class of tasks that want what the plan says.
func (q *Queue) addClass(j *job, p *plan) {
	r := q.join(j.sub, j.id(q.host), p)
	j.classes = append(j.classes, &class{job: j, request: r, share: j.shareOf(r), plan: p, place: -1})
}

// shareOf is what the job contributes to a request.
func (j *job) shareOf(r *Request) *share {
	if s := j.shareBy[r]; s != nil {
		return s
	}
	if i := slices.IndexFunc(j.shares, func(s *share) bool { return s.request == r }); i >= 0 && j.shareBy == nil {
		return j.shares[i]
	}
	s := &share{request: r}
	if j.shares = append(j.shares, s); j.stride() > 1 {
		if j.shareBy == nil {
			j.shareBy = map[*Request]*share{}
		}
		j.shareBy[r] = s
	}
	return s
}

// fill makes every task of a new job ready.
func (q *Queue) fill(j *job) {
	if len(j.classes) > 1 {
		q.together(j, func() {
			for i := range j.state {
				q.setReady(j, i, true)
			}
		})
		return
	}
	c, n := j.classes[0], len(j.state)
	c.ready.words = make([]uint64, (n+63)/64)
	for w := range c.ready.words {
		c.ready.words[w] = math.MaxUint64
	}
	if n%64 != 0 {
		c.ready.words[n/64] = 1<<(n%64) - 1
	}
	c.count, c.share.count = n, n
	q.settle(c)
	q.settleShare(j, c.share)
}

func (q *Queue) assigned(j *job, e Event) {
	r := j.of(e.Index)
	if r.live || e.Attempt != j.nextAttempt(e.Index) {
		panic(fmt.Sprintf("queue: attempt %d of %v after %d (live: %v)", e.Attempt, j.id(q.host).Task(e.Index), r.attempt, r.live))
	}
	r.attempt, r.live, r.node, r.address, r.claim = e.Attempt, true, e.Node, e.Address, e.Claim
	r.place, r.owner, r.both, r.requeued = "", "", false, false
	r.assigned, r.started, r.ended, r.exit = e.Time, 0, 0, nil
	r.begins(e.Image)
	j.active++
	q.transition(j, e.Index, roost.Starting)
	q.settleAll(j)
}

// liveOne is the record of the attempt that an event is of, which must be live.
func (q *Queue) liveOne(j *job, e Event) *record {
	r := j.book.written(e.Index)
	if r == nil || !r.live || r.attempt != e.Attempt {
		panic(fmt.Sprintf("queue: %v of attempt %d of %v, which is not live", e.What, e.Attempt, j.id(q.host).Task(e.Index)))
	}
	return r
}

// over ends the live attempt of a task.
func (q *Queue) over(j *job, e Event) *record {
	r := q.liveOne(j, e)
	r.live, r.ended, j.ended = false, e.Time, max(j.ended, e.Time)
	if r.requeued { // from the beginning
		q.dropAll(j, e.Index)
	}
	r.owner, r.both = "", false
	j.active--
	return r
}

// settleAll is for when a job's limit of active tasks may have come or gone.
func (q *Queue) settleAll(j *job) {
	if j.plan.maxRunning > 0 {
		q.settleJob(j)
	}
}

func (q *Queue) ended(j *job, e Event) {
	r, x := q.over(j, e), e.Exit
	r.exit = x
	if q.concluded(j, e.Index, r) {
		return
	}
	switch x.Cause {
	case ByItself, ByWalltime, ByMemory, ByGPUMemory, ByDisk, ByCPUTime, ByVirtual, ByRefusal:
		r.machine = 0
		q.ran(j, e.Index, x.Wall)
		if j.plan.saving.restarts(x) {
			q.again(j, e.Index, r.restarted(x))
			return
		}
		if x.Cause != ByWalltime { // what went wrong would go wrong again
			q.dropAll(j, e.Index)
		}
		if x.Success() {
			q.complete(j, e.Index, false)
		} else if r.own++; r.own <= j.plan.retries && !r.removed {
			q.again(j, e.Index, r.anew())
		} else {
			q.complete(j, e.Index, true)
		}
	case ByRestore:
		if r.saves == nil || r.saves.from == 0 { // there was none
			q.spoiled(j, e.Index, r, x.Reason)
			return
		}
		q.spoil(j, e.Index, r.saves.from)
		q.interrupted(j, e, r, x.Reason)
	case ByLaunch:
		if j.plan.pbs { // whose users wait for its end, and look there for what was wrong
			r.machine = 0
			q.dropAll(j, e.Index)
			q.complete(j, e.Index, true)
			return
		}
		if r.hold == "" {
			r.held, r.hold = true, x.Reason
		}
		q.again(j, e.Index, r)
	case ByMachine:
		q.spoiled(j, e.Index, r, x.Reason)
	default:
		q.interrupted(j, e, r, x.Reason)
	}
}

func (q *Queue) lost(j *job, e Event) {
	r := q.over(j, e)
	r.exit = nil
	if !q.concluded(j, e.Index, r) {
		q.interrupted(j, e, r, e.Reason)
	}
}

// complete makes a task final by its own doing, whatever was asked of it meanwhile.
func (q *Queue) complete(j *job, i int, failed bool) {
	if failed {
		j.failed++
	} else {
		j.compact(i)
	}
	q.transition(j, i, roost.Completed)
	q.ledEnded(j, i)
}

// spoiled is for an attempt that a machine spoiled.
func (q *Queue) spoiled(j *job, i int, r *record, why string) {
	if r.machine > 0 && time.Duration(r.ended-r.spoiled) < oneTrouble && r.ended >= r.spoiled {
		q.again(j, i, r)
		return
	}
	r.spoiled = r.ended
	if r.machine++; r.machine >= maxMachineFailures && !r.held {
		r.held, r.hold, r.machine = true, fmt.Sprintf("%d attempts in a row were spoiled by machines, the last one: %s", maxMachineFailures, why), 0
	}
	q.again(j, i, r)
}

// interrupted is for an attempt that was ended before it was finished: it is made again, if it may be.
func (q *Queue) interrupted(j *job, e Event, r *record, why string) {
	once := !j.plan.rerunnable && !r.held && !r.requeued && r.newest() == nil
	switch {
	case once && e.Force && !r.removed:
		q.broken(j, e.Index, r, why)
		return
	case once:
		r.held, r.hold = true, "it was interrupted and may not be run twice: "+why
	}
	q.again(j, e.Index, r)
}

// broken ends a task that was interrupted and may not be run twice.
func (q *Queue) broken(j *job, i int, r *record, why string) {
	x := Exit{Cause: ByMachine, Signal: sigkill}
	if r.exit != nil {
		x = *r.exit
	}
	if x.Code == 0 && x.Signal == 0 { // whatever it said before that, it has not succeeded
		x.Signal = sigkill
	}
	x.Reason, r.machine = "it was interrupted and may not be run twice: "+why, 0
	r.exit = &x
	q.dropAll(j, i)
	q.complete(j, i, true)
}

// again puts a task back, or where somebody wanted it meanwhile.
func (q *Queue) again(j *job, i int, r *record) {
	delete(j.urgent, i)
	q.reclass(j, i)
	if n := j.plan.runs + j.attemptsOf(r); j.plan.runs >= 0 && n > maxRuns && !r.held {
		r.held, r.hold = true, fmt.Sprintf("run_count: it was run %d times, and %d are the most", n, maxRuns)
	}
	switch {
	case r.removed:
		q.dropAll(j, i)
		q.transition(j, i, roost.Removed)
	case r.held:
		q.transition(j, i, roost.Held)
	case j.blocked():
		q.transition(j, i, roost.Blocked)
	default:
		q.transition(j, i, roost.Idle)
	}
	if !j.state[i].Final() {
		q.scatter(j, i)
	}
}

// unwait forgets that a job waits for anything.
func (q *Queue) unwait(j *job) {
	others := slices.Clone(j.rivals)
	for _, w := range append(slices.Clone(j.sub.Waits), j.waits...) {
		others = append(others, w.Job)
	}
	for _, other := range others {
		delete(q.dependents[other], j.seq)
		if len(q.dependents[other]) == 0 {
			delete(q.dependents, other)
		}
	}
	delete(q.timed, j.seq)
	delete(q.ripe, j.seq)
}

func (q *Queue) purge(j *job) {
	if !j.final() {
		panic(fmt.Sprintf("queue: job %d is purged and not final", j.seq))
	}
	q.unwait(j)
	q.recount()
	q.remember(j)
	delete(q.dependents, j.seq)
	delete(q.counted, j.seq)
	for i := range j.state {
		q.dropAll(j, i)
	}
	for _, c := range j.classes {
		q.leave(c)
	}
	delete(q.jobs, j.seq)
	delete(q.unasked, j.seq)
	delete(q.done, j.seq)
	q.unsaved[j.seq] = true // its snapshot is to go, too
	rest := slices.DeleteFunc(q.keys[j.sub.Key], func(seq uint64) bool { return seq == j.seq })
	if q.keys[j.sub.Key] = rest; len(rest) == 0 {
		delete(q.keys, j.sub.Key)
	}
	q.changed[j.seq] = true
}

// remember strikes a job that leaves from what other jobs wait for, where it has ended as they want. Where it has not, they are dropped.
func (q *Queue) remember(gone *job) {
	for seq := range q.dependents[gone.seq] {
		j := q.jobs[seq]
		before := len(j.waits)
		j.waits = slices.DeleteFunc(slices.Clone(j.waits), func(w Wait) bool {
			met, _, _ := q.resolve(w, Limits{})
			return w.Job == gone.seq && met
		})
		if len(j.waits) != before {
			q.unsaved[seq], q.ripe[seq] = true, true
		}
	}
}

func (q *Queue) attemptOf(j *job, i int) roost.AttemptID {
	return roost.AttemptID{Task: j.id(q.host).Task(i), Attempt: j.book.written(i).attempt}
}
