// Package queue is the jobs, tasks and attempts of one schedd: what was submitted, where
// each task stands, which of them could start now. It is pure. What users and machines
// ask is first decided (SubmitJobs, HoldTasks, AssignNext, RecordEnded, …): the answer is
// events, or an error, and nothing changes. Apply folds an event into the state, in the
// running schedd and in the replay of its log alike. What follows from the state is read
// from sets of what has changed (TakeDirtyRequests, TakeVacates, Followups, TakeFinal),
// so that the cost is that of the change and not of the queue.
//
// The life of a task:
//
//	                     Unblocked                 Assigned              Started
//	Submitted ─▶ Blocked ──────────▶ OnlyIdle ────────────────▶ Starting ─────────────▶ Running
//	                │ ▲               │ ▲ ▲                     │                      │
//	           Held │ │ Released Held │ │ │ Lost; Ended by a     └──────────┬───────────┘
//	                ▼ │               ▼ │ │ machine's doing, or with        │ Ended
//	               Held ◀─────────────Held └── retries left ◀──────────────┼──────▶ Completed
//	                                   ▲     a hold was asked meanwhile     │
//	                                   └────────────────────────────────────┤
//	Dropped, from any state without a live attempt ─▶ Removed ◀─────────────┘ a removal was asked meanwhile
//
// Retried makes OnlyIdle of Completed with a failure, and of Removed. Suspended and
// Resumed go between Running and Suspended, which ends as Running does. What of a task's
// work is kept in checkpoints, checkpoint.go says.
//
// Attempts are numbered from 1 and only the last may be live. An attempt's end is
// believed once, and only for the present number (P3, P4).
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
	host              string
	lastSeq           uint64
	jobs              map[uint64]*job
	jobsByKey         map[string][]uint64
	dependents        map[uint64]map[uint64]bool // job -> jobs that wait for it
	countedDependents map[uint64]bool            // of those, jobs of which so many tasks are waited for
	requests          map[RequestID]*Request
	requestByKey      map[string]*Request
	lastRequest       RequestID
	runtimesByUser    map[uint32]*lastRuntimes // by user
	tasks             int                      // not final
	openByUser        map[uint32]int           // of those, by user
	changes           int                      // task states changed so far

	dirtyRequests map[RequestID]bool
	changedJobs   map[uint64]bool // for those who watch
	unsavedJobs   map[uint64]bool // since the last checkpoint
	vacates       []VacateAttempt
	changedHosts  []roost.AttemptID // of jobs that have given machines back
	toResolve     map[uint64]bool   // jobs of which something follows: unblocking, dropping
	eventTime     int64             // when what is being applied happened, unix nanoseconds
	finalJobs     map[uint64]bool
	startTimes    map[uint64]bool // jobs that wait for their start time
	droppedImages []StoredImage   // images that were let go
	freezes       []FreezeAttempt
	changedLimits []AttemptLimits

	demands        map[QuotaKey]QuotaDemand // see Demand
	changedDemands map[QuotaKey]bool        // of those, which have changed
	demandChanged  map[uint64]bool          // jobs whose demand may have changed
	deferredJobs   map[uint64]bool          // jobs that were taken while nobody could say whether quotas allow them
}

// VacateAttempt asks that an active attempt be ended.
type VacateAttempt struct {
	Attempt    roost.AttemptID
	Fast       bool
	Checkpoint bool // its work, in a checkpoint
	Reason     string
}

// New returns an empty queue of the schedd on that host.
func New(host string) *Queue {
	return &Queue{
		host: host, jobs: map[uint64]*job{}, jobsByKey: map[string][]uint64{}, dependents: map[uint64]map[uint64]bool{},
		countedDependents: map[uint64]bool{},
		runtimesByUser:    map[uint32]*lastRuntimes{}, requests: map[RequestID]*Request{},
		requestByKey: map[string]*Request{}, dirtyRequests: map[RequestID]bool{}, changedJobs: map[uint64]bool{},
		openByUser: map[uint32]int{}, demands: map[QuotaKey]QuotaDemand{}, changedDemands: map[QuotaKey]bool{},
		demandChanged: map[uint64]bool{}, deferredJobs: map[uint64]bool{},
		unsavedJobs: map[uint64]bool{}, toResolve: map[uint64]bool{}, finalJobs: map[uint64]bool{},
		startTimes: map[uint64]bool{},
	}
}

// Len is the number of jobs.
func (q *Queue) Len() int { return len(q.jobs) }

// OpenTaskCount counts the tasks that are not final.
func (q *Queue) OpenTaskCount() int { return q.tasks }

// ChangeCount counts the changes of task states so far.
func (q *Queue) ChangeCount() int { return q.changes }

// TakeDirtyRequests drains the requests of which something has changed.
func (q *Queue) TakeDirtyRequests() []RequestID {
	ids := takeAll(&q.dirtyRequests)
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
	for _, seq := range takeAll(&q.changedJobs) {
		ids = append(ids, roost.JobID{Seq: seq, Host: q.host})
	}
	return ids
}

// TakeVacates drains the attempts that are to be ended.
func (q *Queue) TakeVacates() []VacateAttempt {
	out := q.vacates
	q.vacates = nil
	return out
}

// TakeFinal drains the jobs that have become final since the last call.
func (q *Queue) TakeFinal() []uint64 { return takeAll(&q.finalJobs) }

func takeAll[K cmp.Ordered](set *map[K]bool) []K {
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
		r.PredictedRuntime = q.predictedRuntime(r)
		r.Priority, r.OldestSubmit = top.spec.priority, time.Unix(0, top.orderTime)
		if r.classes[0].spec.needsRestore {
			// what had to leave a machine goes on before the rest of its job begins
			r.OldestSubmit = r.OldestSubmit.Add(-1)
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

// maxSkippedTasks bounds how many ready tasks are looked at for one that is not skipped.
const maxSkippedTasks = 256

// NextTask returns the task of a request that should run next. There is none while it
// waits for others to start with.
func (q *Queue) NextTask(id RequestID) (roost.TaskID, bool) { return q.NextTaskExcept(id, nil) }

// NextTaskExcept is Next without the tasks for which skip is true; a nil skip skips none.
func (q *Queue) NextTaskExcept(id RequestID, skip func(roost.TaskID) bool) (roost.TaskID, bool) {
	r := q.requests[id]
	if r == nil || len(r.classes) == 0 {
		return roost.TaskID{}, false
	}
	c := r.classes[0]
	if size, ok := q.NextGang(id); ok {
		if size != 1 {
			return roost.TaskID{}, false
		}
		return c.job.id(q.host).Task(c.job.nextGang(r)[0]), true // it is what is left of its gang
	}
	if skip == nil {
		return c.job.id(q.host).Task(c.ready.first()), true
	}
	looked := 0
	for _, c := range r.classes {
		for i := c.ready.first(); i >= 0 && looked < maxSkippedTasks; i = c.ready.after(i) {
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

// IsLive reports whether an attempt is its task's present one and has not ended.
func (q *Queue) IsLive(a roost.AttemptID) bool {
	j := q.jobs[a.Task.Job.Seq]
	if j == nil {
		return false
	}
	r := j.records.own(a.Task.Index)
	return r != nil && r.live && r.attempt == a.Attempt
}

// IsRemoving reports whether an attempt is live and its task is to be removed when it has
// ended.
func (q *Queue) IsRemoving(a roost.AttemptID) bool {
	return q.IsLive(a) && q.jobs[a.Task.Job.Seq].records.own(a.Task.Index).removeWanted
}

// IsFinal reports whether a task has ended for good, or is not there.
func (q *Queue) IsFinal(t roost.TaskID) bool {
	j := q.jobs[t.Job.Seq]
	return j == nil || t.Index < 0 || t.Index >= len(j.state) || j.state[t.Index].IsFinal()
}

// NodeOf is where a live attempt is; empty for any other.
func (q *Queue) NodeOf(a roost.AttemptID) string {
	if !q.IsLive(a) {
		return ""
	}
	return q.jobs[a.Task.Job.Seq].records.own(a.Task.Index).node
}

// ActiveAttempt is an attempt that is live, as recovery wants to know it.
type ActiveAttempt struct {
	Attempt   roost.AttemptID
	Request   *Request
	Node      string
	Address   string
	Claim     uint64
	StartTime bool
}

// ActiveAttempts lists the live attempts, in order of their ids.
func (q *Queue) ActiveAttempts() []ActiveAttempt {
	var out []ActiveAttempt
	for _, seq := range slices.Sorted(maps.Keys(q.jobs)) {
		j := q.jobs[seq]
		if j.active == 0 {
			continue
		}
		for i := range j.state {
			if r := j.records.own(i); r != nil && r.live {
				id := roost.AttemptID{Task: j.id(q.host).Task(i), Attempt: r.attempt}
				out = append(out, ActiveAttempt{id, j.class(i).request, r.node, r.address, r.claim, r.started != 0})
			}
		}
	}
	return out
}

// NextDue is when the next job may start that waits for its time; zero when none does.
func (q *Queue) NextDue() (at time.Time) {
	for seq := range q.startTimes {
		if t := time.Unix(q.jobs[seq].spec.startAfter, 0); at.IsZero() || t.Before(at) {
			at = t
		}
	}
	return at
}

// setTaskState is the one place where a task changes its state.
func (q *Queue) setTaskState(j *job, i int, to roost.TaskState) {
	from := j.state[i]
	if from == to {
		return
	}
	legal := to.IsFinal() && !from.IsFinal() || from.IsFinal() && (to == roost.Idle || to == roost.Blocked) ||
		!from.IsFinal() && !to.IsFinal()
	if !legal || to == roost.Starting && from != roost.Idle {
		panic(fmt.Sprintf("queue: task %v goes from %v to %v", j.id(q.host).Task(i), from, to))
	}
	j.state[i] = to
	j.gangs.taskMoved(i, from, to)
	q.updateGangOrder(j, i, from, to)
	j.counts[from]--
	j.counts[to]++
	j.updateUserState(i)
	q.changes++
	switch {
	case to.IsFinal() && !from.IsFinal():
		q.countOpen(j, -1)
		j.class(i).open--
	case from.IsFinal() && !to.IsFinal():
		q.countOpen(j, 1)
		j.class(i).open++
	}
	q.setReady(j, i, to == roost.Idle)
	if j.urgent[i] != nil && to != roost.Idle && !to.IsActive() {
		delete(j.urgent, i)
		q.updateRestoreClass(j, i)
	}
	if to.IsFinal() && j.isFinal() {
		q.finalJobs[j.seq] = true
		q.markToResolve(j)
	} else if to.IsFinal() && q.countedDependents[j.seq] {
		q.markToResolve(j)
	}
}

// markChanged marks a job as changed.
func (q *Queue) markChanged(j *job) {
	q.changedJobs[j.seq], q.unsavedJobs[j.seq], q.demandChanged[j.seq] = true, true, true
	j.changes++
	j.updateEligible(q.eventTime)
}

// markToResolve marks the jobs that wait for this one.
func (q *Queue) markToResolve(j *job) {
	for seq := range q.dependents[j.seq] {
		q.toResolve[seq] = true
	}
}
