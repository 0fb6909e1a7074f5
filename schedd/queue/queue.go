// Package queue is the jobs, tasks and attempts of one schedd: what was submitted, where each task stands, and which could start now. It is
// pure. What users and machines want is first decided (Submit, Hold, Assign, End, …), which gives events or an error and changes nothing.
// Apply folds an event into the state, live and in the replay of the log alike. What follows is drained from sets of what has changed
// (DirtyRequests, TakeVacates, TakeChanged, Done), so that the cost is that of the change and never that of the queue.
//
// The life of a task:
//
//	          waits are met,
//	             Due                Assigned             Started
//	Blocked ────────────▶ Idle ───────────────▶ Starting ───────▶ Running
//	  ▲ │                 ▲ │ ▲                    │                 │
//	  │ │ Held    Released│ │ │                    └────────┬────────┘
//	  │ ▼                 │ │ │ Lost, a machine's doing,    │ Ended
//	  └─── Held ──────────┘ │ │ or retries are left         │
//	        ▲ ▲─────────────┘ └─────────────────────────────┤
//	        │   Held        a hold was wanted, or the       │
//	        └───────────────────────────────────────────────┤
//	                        task cannot be started          ├──▶ Completed
//	                                                        │
//	RemovalRequested, at once where no attempt is live ──▶ Removed
//
// Retried makes Idle of a failed Completed and of Removed. What is wanted of an active task (a hold, a removal) stands in a field beside its
// state: the event changes the wish, and the end of the attempt changes the state. No attempt starts after the wish is recorded (P8).
//
// Attempts of a task are numbered from 1, only the last may be live, and its end is believed once (P3, P4).
package queue

import (
	"cmp"
	"container/heap"
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
	keys        map[string][]uint64            // submit key -> jobs in their order
	dependents  map[uint64]map[uint64]struct{} // job -> jobs that wait for it
	requests    map[RequestID]*Request
	alike       map[requestKey]*Request
	lastRequest RequestID
	tasks       int // not final
	active      int
	changes     int // of task states, so far
	timers      timerHeap
	template    template // of the job that was launched last

	dirty    map[RequestID]struct{}
	changed  map[uint64]struct{} // for those who watch
	unsaved  map[uint64]struct{} // since the last checkpoint
	done     map[uint64]struct{}
	vacates  []Vacate
	departed []uint64 // purged since the last checkpoint
}

// Vacate asks that an active attempt be ended.
type Vacate struct {
	Attempt roost.AttemptID
	Fast    bool // without notice
	Reason  string
}

// New returns an empty queue of the schedd on that host.
func New(host string) *Queue {
	return &Queue{
		host: host, jobs: map[uint64]*job{}, keys: map[string][]uint64{}, dependents: map[uint64]map[uint64]struct{}{},
		requests: map[RequestID]*Request{}, alike: map[requestKey]*Request{}, dirty: map[RequestID]struct{}{}, changed: map[uint64]struct{}{},
		unsaved: map[uint64]struct{}{}, done: map[uint64]struct{}{},
	}
}

// Len is the number of jobs.
func (q *Queue) Len() int { return len(q.jobs) }

// Queued and Running count the tasks that are not final, and the ones of those with a live attempt.
func (q *Queue) Queued() int { return q.tasks }

// Running counts the tasks with a live attempt.
func (q *Queue) Running() int { return q.active }

// Changed counts the changes of task states and wishes so far: the difference over an Apply is how many tasks it concerned.
func (q *Queue) Changed() int { return q.changes }

// LastSeq is the highest sequence number that was given out.
func (q *Queue) LastSeq() uint64 { return q.lastSeq }

// DirtyRequests drains the requests of which something has changed. One that is no longer found is gone.
func (q *Queue) DirtyRequests() []RequestID { return drain(q.dirty) }

// TakeChanged drains the jobs of which something has changed.
func (q *Queue) TakeChanged() []roost.JobID { return q.ids(drain(q.changed)) }

// Done drains the jobs that have become final: they go to the history, and are then purged.
func (q *Queue) Done() []roost.JobID {
	return q.ids(slices.DeleteFunc(drain(q.done), func(seq uint64) bool { j := q.jobs[seq]; return j == nil || !j.final() }))
}

// TakeVacates drains the attempts that are to be ended. After a restart it gives those that were to be ended before.
func (q *Queue) TakeVacates() []Vacate {
	out := q.vacates
	q.vacates = nil
	return out
}

// Live reports whether an attempt is its task's present one and has no end recorded.
func (q *Queue) Live(a roost.AttemptID) bool {
	_, r := q.find(a)
	return r != nil
}

// Active is a live attempt, as recovery wants to know it.
type Active struct {
	Attempt       roost.AttemptID
	Request       RequestID
	Node, Address string
	Claim         uint64
	Started       bool
}

// Active lists the live attempts by node, then by id.
func (q *Queue) Active() []Active {
	var out []Active
	for _, seq := range slices.Sorted(maps.Keys(q.jobs)) {
		j := q.jobs[seq]
		if j.active == 0 {
			continue
		}
		for _, i := range slices.Sorted(maps.Keys(j.records)) {
			if r := j.records[i]; r.live {
				id := roost.AttemptID{Task: j.id(q.host).Task(i), Attempt: r.attempt}
				out = append(out, Active{id, j.class(i).request.ID, r.node, r.address, r.claim, r.started != 0})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Active) int { return cmp.Compare(a.Node, b.Node) })
	return out
}

// NextDue is when the next job's start time comes; zero when none waits for it.
func (q *Queue) NextDue() time.Time {
	for len(q.timers) > 0 {
		if j := q.jobs[q.timers[0].seq]; j != nil && !j.due {
			return time.Unix(q.timers[0].at, 0)
		}
		heap.Pop(&q.timers)
	}
	return time.Time{}
}

// Due decides that the start times that have passed have come.
func (q *Queue) Due(now time.Time) (events []Event) {
	for _, t := range q.timers {
		if j := q.jobs[t.seq]; j != nil && !j.due && t.at <= now.Unix() {
			events = append(events, Event{What: Due, Time: now.UnixNano(), Job: t.seq})
		}
	}
	slices.SortFunc(events, func(a, b Event) int { return cmp.Compare(a.Job, b.Job) })
	return events
}

func (q *Queue) ids(seqs []uint64) []roost.JobID {
	var ids []roost.JobID
	for _, seq := range seqs {
		ids = append(ids, roost.JobID{Seq: seq, Host: q.host})
	}
	return ids
}

// find returns the job and the record of a live attempt, nil when it is not.
func (q *Queue) find(a roost.AttemptID) (*job, *record) {
	j := q.jobs[a.Task.Job.Seq]
	if j == nil {
		return nil, nil
	}
	if r := j.records[a.Task.Index]; r != nil && r.live && r.attempt == a.Attempt {
		return j, r
	}
	return j, nil
}

func drain[K cmp.Ordered](set map[K]struct{}) []K {
	if len(set) == 0 {
		return nil
	}
	keys := slices.Sorted(maps.Keys(set))
	clear(set)
	return keys
}

// timer is a job's start time in unix seconds.
type timer struct {
	at  int64
	seq uint64
}

type timerHeap []timer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, k int) bool {
	return h[i].at < h[k].at || h[i].at == h[k].at && h[i].seq < h[k].seq
}
func (h timerHeap) Swap(i, k int) { h[i], h[k] = h[k], h[i] }
func (h *timerHeap) Push(x any)   { *h = append(*h, x.(timer)) }
func (h *timerHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// illegal is the panic of a broken invariant.
func illegal(format string, args ...any) { panic("queue: " + fmt.Sprintf(format, args...)) }
