// Package queue is the jobs, tasks and attempts of one schedd: what was submitted, where each task stands, which of them could start now. It is
// pure. What users and machines ask is first decided (Submit, Hold, Assign, End, …): the answer is events, or an error, and nothing changes. Apply
// folds an event into the state, in the running schedd and in the replay of its log alike. What follows from the state is read from sets of
// what has changed (DirtyRequests, TakeVacates, Consequences, Done), so that the cost is that of the change and not of the queue.
//
// The life of a task:
//
//	                     Unblocked                 Assigned              Started
//	Submitted ─▶ Blocked ──────────▶ Idle ────────────────▶ Starting ─────────────▶ Running
//	                │ ▲               │ ▲ ▲                     │                      │
//	           Held │ │ Released Held │ │ │ Lost; Ended by a     └──────────┬───────────┘
//	                ▼ │               ▼ │ │ machine's doing, or with        │ Ended
//	               Held ◀─────────────Held └── retries left ◀──────────────┼──────▶ Completed
//	                                   ▲     a hold was asked meanwhile     │
//	                                   └────────────────────────────────────┤
//	Dropped, from any state without a live attempt ─▶ Removed ◀─────────────┘ a removal was asked meanwhile
//
// Retried makes Idle of Completed with a failure, and of Removed. Suspended and Resumed go between Running and Suspended, which ends as Running does.
// What of a task's work is kept in checkpoints, checkpoint.go says.
//
// Attempts are numbered from 1 and only the last may be live. An attempt's end is believed once, and only for the present number (P3, P4).
package queue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
)

// Queue holds the jobs of one schedd.
type Queue struct {
	host        string
	lastSeq     uint64
	jobs        map[uint64]*job
	keys        map[string][]uint64
	dependents  map[uint64]map[uint64]bool // job -> jobs that wait for it
	counted     map[uint64]bool            // of those, jobs of which so many tasks are waited for
	requests    map[RequestID]*Request
	byKey       map[string]*Request
	lastRequest RequestID
	runs        map[uint32]*runs // by user
	tasks       int              // not final
	open        map[uint32]int   // of those, by user
	changes     int              // task states changed so far

	dirty   map[RequestID]bool
	changed map[uint64]bool // for those who watch
	unsaved map[uint64]bool // since the last checkpoint
	asked   []Vacate
	ripe    map[uint64]bool // jobs of which something follows: unblocking, dropping
	at      int64           // when what is being applied happened, unix nanoseconds
	done    map[uint64]bool
	timed   map[uint64]bool // jobs that wait for their start time
	dropped []Stored        // images that were let go
	frozen  []Freeze
	limits  []Limit

	demands   map[Payer]Demand // see Demand
	demanded  map[Payer]bool   // of those, which have changed
	uncounted map[uint64]bool  // jobs whose demand may have changed
	unasked   map[uint64]bool  // jobs that were taken while nobody could say whether quotas allow them
}

// Vacate asks that an active attempt be ended.
type Vacate struct {
	Attempt roost.AttemptID
	Fast    bool
	Keep    bool // its work, in a checkpoint
	Reason  string
}

// New returns an empty queue of the schedd on that host.
func New(host string) *Queue {
	return &Queue{
		host: host, jobs: map[uint64]*job{}, keys: map[string][]uint64{}, dependents: map[uint64]map[uint64]bool{}, counted: map[uint64]bool{},
		runs: map[uint32]*runs{}, requests: map[RequestID]*Request{}, byKey: map[string]*Request{}, dirty: map[RequestID]bool{}, changed: map[uint64]bool{},
		open: map[uint32]int{}, demands: map[Payer]Demand{}, demanded: map[Payer]bool{}, uncounted: map[uint64]bool{}, unasked: map[uint64]bool{},
		unsaved: map[uint64]bool{}, ripe: map[uint64]bool{}, done: map[uint64]bool{}, timed: map[uint64]bool{},
	}
}

// Len is the number of jobs.
func (q *Queue) Len() int { return len(q.jobs) }

// Tasks counts the tasks that are not final.
func (q *Queue) Tasks() int { return q.tasks }

// Changed counts the changes of task states so far.
func (q *Queue) Changed() int { return q.changes }

// DirtyRequests drains the requests of which something has changed.
func (q *Queue) DirtyRequests() []RequestID {
	ids := drain(&q.dirty)
	for _, id := range ids {
		if r := q.requests[id]; r != nil {
			r.dirty = false
		}
	}
	return ids
}

// TakeChanged drains the jobs of which something has changed.
func (q *Queue) TakeChanged() []roost.JobID {
	var ids []roost.JobID
	for _, seq := range drain(&q.changed) {
		ids = append(ids, roost.JobID{Seq: seq, Host: q.host})
	}
	return ids
}

// TakeVacates drains the attempts that are to be ended.
func (q *Queue) TakeVacates() []Vacate {
	out := q.asked
	q.asked = nil
	return out
}

// Done drains the jobs that have become final since the last call.
func (q *Queue) Done() []uint64 { return drain(&q.done) }

func drain[K cmp.Ordered](set *map[K]bool) []K {
	if len(*set) == 0 {
		return nil
	}
	keys := slices.Sorted(maps.Keys(*set))
	*set = map[K]bool{}
	return keys
}

// Requests lists the ids of all requests.
func (q *Queue) Requests() []RequestID { return slices.Sorted(maps.Keys(q.requests)) }

// Request returns a request as it is now.
func (q *Queue) Request(id RequestID) (*Request, bool) {
	r, ok := q.requests[id]
	if ok && len(r.classes) > 0 {
		top := r.classes[0].job
		r.Predicted = q.predict(r)
		r.Priority, r.Oldest = top.plan.priority, time.Unix(0, top.since)
		if r.classes[0].plan.restores {
			r.Oldest = r.Oldest.Add(-1) // what had to leave a machine goes on before the rest of its job begins
		}
	}
	return r, ok
}

// RequestOf returns the request that a task belongs to.
func (q *Queue) RequestOf(t roost.TaskID) (*Request, bool) {
	j := q.jobs[t.Job.Seq]
	if j == nil || t.Index < 0 || t.Index >= len(j.state) {
		return nil, false
	}
	return j.class(t.Index).request, true
}

// maxSkipped bounds how many ready tasks are looked at for one that is not skipped.
const maxSkipped = 256

// Next returns the task of a request that should run next. There is none while it waits for others to start with.
func (q *Queue) Next(id RequestID) (roost.TaskID, bool) { return q.NextBut(id, nil) }

// NextBut is Next without the tasks for which skip is true; a nil skip skips none.
func (q *Queue) NextBut(id RequestID, skip func(roost.TaskID) bool) (roost.TaskID, bool) {
	r := q.requests[id]
	if r == nil || len(r.classes) == 0 {
		return roost.TaskID{}, false
	}
	c := r.classes[0]
	if size, ok := q.Gang(id); ok {
		if size != 1 {
			return roost.TaskID{}, false
		}
		return c.job.id(q.host).Task(c.job.next(r)[0]), true // it is what is left of its gang
	}
	if skip == nil {
		return c.job.id(q.host).Task(c.ready.first()), true
	}
	looked := 0
	for _, c := range r.classes {
		for i := c.ready.first(); i >= 0 && looked < maxSkipped; i = c.ready.after(i) {
			if t := c.job.id(q.host).Task(i); !skip(t) {
				return t, true
			}
			looked++
		}
	}
	return roost.TaskID{}, false
}

// NextJob is the job whose task, or gang, a claim of the request would start next.
func (q *Queue) NextJob(id RequestID) (roost.JobID, bool) {
	r := q.requests[id]
	if r == nil || len(r.classes) == 0 {
		return roost.JobID{}, false
	}
	return r.classes[0].job.id(q.host), true
}

// Live reports whether an attempt is its task's present one and has not ended.
func (q *Queue) Live(a roost.AttemptID) bool {
	j := q.jobs[a.Task.Job.Seq]
	if j == nil {
		return false
	}
	r := j.book.written(a.Task.Index)
	return r != nil && r.live && r.attempt == a.Attempt
}

// Removing reports whether an attempt is live and its task is to be removed when it has ended.
func (q *Queue) Removing(a roost.AttemptID) bool {
	return q.Live(a) && q.jobs[a.Task.Job.Seq].book.written(a.Task.Index).removed
}

// Over reports whether a task has ended for good, or is not there.
func (q *Queue) Over(t roost.TaskID) bool {
	j := q.jobs[t.Job.Seq]
	return j == nil || t.Index < 0 || t.Index >= len(j.state) || j.state[t.Index].Final()
}

// NodeOf is where a live attempt is; empty for any other.
func (q *Queue) NodeOf(a roost.AttemptID) string {
	if !q.Live(a) {
		return ""
	}
	return q.jobs[a.Task.Job.Seq].book.written(a.Task.Index).node
}

// Active is an attempt that is live, as recovery wants to know it.
type Active struct {
	Attempt roost.AttemptID
	Request *Request
	Node    string
	Address string
	Claim   uint64
	Started bool
}

// Active lists the live attempts, in order of their ids.
func (q *Queue) Active() []Active {
	var out []Active
	for _, seq := range slices.Sorted(maps.Keys(q.jobs)) {
		j := q.jobs[seq]
		if j.active == 0 {
			continue
		}
		for i := range j.state {
			if r := j.book.written(i); r != nil && r.live {
				id := roost.AttemptID{Task: j.id(q.host).Task(i), Attempt: r.attempt}
				out = append(out, Active{id, j.class(i).request, r.node, r.address, r.claim, r.started != 0})
			}
		}
	}
	return out
}

// NextDue is when the next job may start that waits for its time; zero when none does.
func (q *Queue) NextDue() (at time.Time) {
	for seq := range q.timed {
		if t := time.Unix(q.jobs[seq].plan.startAfter, 0); at.IsZero() || t.Before(at) {
			at = t
		}
	}
	return at
}

// transition is the one place where a task changes its state.
func (q *Queue) transition(j *job, i int, to roost.TaskState) {
	from := j.state[i]
	if from == to {
		return
	}
	legal := to.Final() && !from.Final() || from.Final() && (to == roost.Idle || to == roost.Blocked) || !from.Final() && !to.Final()
	if !legal || to == roost.Starting && from != roost.Idle {
		panic(fmt.Sprintf("queue: task %v goes from %v to %v", j.id(q.host).Task(i), from, to))
	}
	j.state[i] = to
	j.gangs.moved(i, from, to)
	q.advance(j, i, from, to)
	j.counts[from]--
	j.counts[to]++
	j.show(i)
	q.changes++
	switch {
	case to.Final() && !from.Final():
		q.countOpen(j, -1)
		j.class(i).open--
	case from.Final() && !to.Final():
		q.countOpen(j, 1)
		j.class(i).open++
	}
	q.setReady(j, i, to == roost.Idle)
	if j.urgent[i] != nil && to != roost.Idle && !to.Active() {
		delete(j.urgent, i)
		q.reclass(j, i)
	}
	if to.Final() && j.final() {
		q.done[j.seq] = true
		q.ripen(j)
	} else if to.Final() && q.counted[j.seq] {
		q.ripen(j)
	}
}

// note marks a job as changed.
func (q *Queue) note(j *job) {
	q.changed[j.seq], q.unsaved[j.seq], q.uncounted[j.seq] = true, true, true
	j.changes++
	j.entitle(q.at)
}

// ripen marks the jobs that wait for this one.
func (q *Queue) ripen(j *job) {
	for seq := range q.dependents[j.seq] {
		q.ripe[seq] = true
	}
}
