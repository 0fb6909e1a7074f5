package queue

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// RequestID names a request within one start of the schedd.
type RequestID uint64

// Request is an equivalence class of tasks (DESIGN §3): whatever runs one of them runs
// all.
type Request struct {
	ID               RequestID
	Owner            string
	UID, GID         uint32
	Group            string
	Queue            string // that its jobs were submitted to
	Band             roost.PriorityBand
	Resources        roost.Resources
	Class            string        // roost.AppBatch or roost.AppStream
	JobLease         time.Duration // 0: as the schedd has it
	Ad               string        // what the other side is matched with
	Ready            int           // tasks that could start now
	Walltime         time.Duration // of each; 0: none
	PredictedRuntime time.Duration // how long one is expected to take; 0: nobody knows
	Reservation      string
	Priority         int       // the highest among them
	PriorityTasks    int       // of Ready, those with Priority, as far as they were counted
	OldestSubmit     time.Time // submit time of the first of those
	Ports            []roost.PortRequest
	Now              bool               // an operator wants them to run now, out of turn
	Service          *jobad.ServiceSpec // they are to run always; nil: they end
	IsAlloc          bool               // they are allocs
	Inside           jobad.AllocPlace   // the alloc set inside which they run; zero: on machines

	key      string
	gangSize int // how many tasks start together; 0: each for itself
	// the number of the job whose tasks are led by the first of their gang, of which its
	// are; 0: it is of no such job
	mpiJob   uint64
	mpiGang  int // the gang of that job
	runtimes lastRuntimes
	classes  classHeap
	members  int // classes of jobs in the queue, waiting or not
	dirty    bool
}

// StaysHomeText is a part of the ad of each request whose tasks run in no other pool.
const StaysHomeText = jobad.StaysHomeText

// IsGang reports whether tasks of the request start together.
func (r *Request) IsGang() bool { return r.gangSize > 1 || r.mpiJob != 0 }

// maxPriorityClasses bounds the classes that are looked at to count the tasks with the
// highest priority.
const maxPriorityClasses = 64

// atTopPriority returns how many tasks have the priority of the first class. The classes
// that have it are the top of the heap.
func (h classHeap) atTopPriority() (tasks int) {
	var look [maxPriorityClasses]int
	for next, end := 0, min(len(h), 1); next < end; next++ {
		at := look[next]
		tasks += h[at].count
		for child := 2*at + 1; child <= 2*at+2 && child < len(h) && end < len(look); child++ {
			if h[child].job.spec.Priority == h[0].job.spec.Priority {
				look[end] = child
				end++
			}
		}
	}
	return tasks
}

// classHeap orders classes by priority, then by age.
type classHeap []*taskClass

func (h classHeap) Len() int { return len(h) }

func (h classHeap) Less(i, k int) bool {
	a, b := h[i].job, h[k].job
	if a.spec.Priority != b.spec.Priority {
		return a.spec.Priority > b.spec.Priority
	}
	return a.orderRank < b.orderRank
}

func (h classHeap) Swap(i, k int) {
	h[i], h[k] = h[k], h[i]
	h[i].heapIndex, h[k].heapIndex = i, k
}

func (h *classHeap) Push(x any) {
	c := x.(*taskClass)
	c.heapIndex = len(*h)
	*h = append(*h, c)
}

func (h *classHeap) Pop() any {
	old := *h
	c := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	c.heapIndex = -1
	return c
}

// How long a task will take nobody knows better than its user, and users say far too
// much: those before it tell more. The mean of the last two that ended is what it is
// taken to need, no more than its walltime (Tsafrir, Etsion, Feitelson: Backfilling using
// system-generated predictions, IEEE TPDS 18(6), 2007, §3): the last two of its own
// request, or, where it says a walltime that bounds the harm, of its user. It is what
// others may start beside it for; what runs already is taken to need its whole walltime,
// and if it has none what was predicted when it was started, which its machine tells.
// After a restart predictions begin anew.

// runtimePredictor predicts how long attempts take.
type runtimePredictor struct {
	runtimesByUser map[uint32]*lastRuntimes // by uid
}

// lastRuntimes are the lengths of the last two attempts that ended by themselves.
type lastRuntimes struct{ last, before time.Duration }

func (r *lastRuntimes) addRuntime(d time.Duration) { r.last, r.before = max(d, time.Second), r.last }

// meanRuntime is what the next one will take; false while there were not two.
func (r *lastRuntimes) meanRuntime() (time.Duration, bool) {
	return (r.last + r.before) / 2, r.before > 0
}

// recordRuntime notes how long an attempt took that ended by itself.
func (q *runtimePredictor) recordRuntime(j *job, i int, wall int64) {
	d := time.Duration(wall)
	j.class(i).request.runtimes.addRuntime(d)
	of := q.runtimesByUser[j.submission.uid]
	if of == nil {
		of = &lastRuntimes{}
		q.runtimesByUser[j.submission.uid] = of
	}
	of.addRuntime(d)
}

// predictedRuntime is how long a task of a request is expected to take; 0 where nobody
// knows.
func (q *runtimePredictor) predictedRuntime(r *Request) time.Duration {
	mean, ok := r.runtimes.meanRuntime()
	if of := q.runtimesByUser[r.UID]; !ok && of != nil && r.Walltime > 0 {
		mean, ok = of.meanRuntime()
	}
	switch {
	case !ok:
		return 0
	case r.Walltime > 0:
		return min(mean, r.Walltime)
	}
	return mean
}
