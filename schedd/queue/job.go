package queue

import (
	"math/bits"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// job is one job in the queue. States take a byte for each task, and a bit while it is
// ready; what else is known of tasks is in the book.
type job struct {
	seq            uint64
	submission     *SubmittedJob
	ad             *classad.Ad
	spec           jobSpec
	submitted      int64 // unix nanoseconds
	state          []roost.TaskState
	counts         [roost.Removed + 1]int
	failed         int // of the completed ones
	records        taskRecords
	firstStarted   int64 // when a task of it first started, unix nanoseconds; 0 for not yet
	lastEnded      int64 // when a task of it last became final
	classes        []*taskClass
	shares         []*jobReady            // of its classes, by request
	shareByRequest map[*Request]*jobReady // of an array of gangs, which has very many
	readyDeferred  bool                   // its tasks change together: they are counted afterwards
	classOf        []uint16               // empty when there is one class
	dependencies   []JobDependency        // not met yet
	// jobs that are to be submitted yet: that come before this one, and that start with
	// it
	expectedBefore, expectedSync int
	runOneSet                    []uint64 // jobs of which one is run, if this one is not
	runOneStarted                bool     // one of them has begun
	// a task of it was removed while it was held or waited for something else than a
	// machine
	removedUnstarted bool
	startTimeReached bool // its start time has come
	active           int  // tasks with a live attempt
	gangs            gangState
	columns          map[string]*packedColumn
	indexes          *roost.ArrayIndexes // that users know the tasks of an array by; nil: their own numbers
	changes          int                 // what has happened to it, counted
	countedDemand    QuotaDemand         // what of its demand is in the queue's sums
	alterations      int64               // how often
	// by the values of its columns: the class of tasks with these, where they differ
	classByValues map[string]int
	// its place among jobs of one priority: its number, unless somebody has swapped it
	// with another's
	orderRank uint64
	orderTime int64 // likewise its age: when it was submitted, unix nanoseconds
	eligible  eligibleTime
	distrust  recordDamage
	// by task: those that an operator wants to run now, until their attempt has ended
	urgent    map[int]*runOrder
	runDenied string // why the last request of that kind was denied; empty: it was not
	// secondary tasks whose machines were given back while their gang ran, or runs
	released map[int]bool
}

// taskClass is the tasks of a job that make the same request. It waits in its request's
// heap while a task of it is ready and may run.
type taskClass struct {
	job     *job
	request *Request
	share   *jobReady
	spec    *jobSpec
	ready   indexSet
	count   int // bits set
	open    int // tasks that are not final
	// of one that was made later: the first that is the same but for the image that it
	// wants to restore, and for when it is to run
	twin      *taskClass
	heapIndex int    // in the request's heap, -1 when not in it
	oldAd     *oldAd // the job as it was when these tasks began, which still run; nil: as it is
}

// jobReady is what one job contributes to one request: the ready tasks of the classes
// that make it, and no more of them than the job may run.
type jobReady struct {
	request *Request
	count   int // tasks ready
	counted int // of those, counted in the request
}

// indexSet is a set of task indexes whose lowest element is found quickly.
type indexSet struct {
	words     []uint64
	firstWord int // no word below it has a bit
}

func (b *indexSet) set(i int) {
	w := i / 64
	for len(b.words) <= w {
		b.words = append(b.words, 0)
	}
	b.words[w] |= 1 << (i % 64)
	b.firstWord = min(b.firstWord, w)
}

func (b *indexSet) clear(i int) { b.words[i/64] &^= 1 << (i % 64) }

func (b *indexSet) has(i int) bool { return i/64 < len(b.words) && b.words[i/64]>>(i%64)&1 == 1 }

// first returns the lowest index in the set, -1 when it is empty.
func (b *indexSet) first() int {
	for ; b.firstWord < len(b.words); b.firstWord++ {
		if w := b.words[b.firstWord]; w != 0 {
			return b.firstWord*64 + bits.TrailingZeros64(w)
		}
	}
	return -1
}

// after returns the lowest index in the set above i, -1 when there is none.
func (b *indexSet) after(i int) int {
	for i++; i < 64*len(b.words); i = i/64*64 + 64 {
		if w := b.words[i/64] >> (i % 64); w != 0 {
			return i + bits.TrailingZeros64(w)
		}
	}
	return -1
}

// below counts the indexes in the set that are less than i.
func (b *indexSet) below(i int) (n int) {
	for w := b.firstWord; w <= i/64 && w < len(b.words); w++ {
		word := b.words[w]
		if w == i/64 {
			word &= 1<<(i%64) - 1
		}
		n += bits.OnesCount64(word)
	}
	return n
}

// nth is the index of which n in the set are less; -1 if there are no more than n.
func (b *indexSet) nth(n int) int {
	for w := b.firstWord; w < len(b.words); w++ {
		word := b.words[w]
		if ones := bits.OnesCount64(word); n >= ones {
			n -= ones
			continue
		}
		for ; n > 0; n-- {
			word &= word - 1
		}
		return w*64 + bits.TrailingZeros64(word)
	}
	return -1
}

// packedColumn holds the values of a column in one piece of memory.
type packedColumn struct {
	text string
	ends []uint32
}

func packColumn(values []string) *packedColumn {
	p := &packedColumn{ends: make([]uint32, len(values))}
	var b strings.Builder
	for i, v := range values {
		b.WriteString(v)
		p.ends[i] = uint32(b.Len())
	}
	p.text = b.String()
	return p
}

func (p *packedColumn) at(i int) string {
	start := uint32(0)
	if i > 0 {
		start = p.ends[i-1]
	}
	return p.text[start:p.ends[i]]
}

func (j *job) id(host string) roost.JobID { return roost.JobID{Seq: j.seq, Host: host} }

// class returns the class of a task.
func (j *job) class(i int) *taskClass {
	if len(j.classOf) == 0 {
		return j.classes[0]
	}
	return j.classes[j.classOf[i]]
}

// isFinal reports whether every task is.
func (j *job) isFinal() bool {
	return j.counts[roost.Completed]+j.counts[roost.Removed] == len(j.state)
}

// isBlocked reports whether the job waits for something else than a machine.
func (j *job) isBlocked() bool {
	return len(j.dependencies) > 0 || j.expectedBefore > 0 || j.expectedSync > 0 || j.runOneStarted ||
		!j.startTimeReached
}

// atMaxRunning reports whether as many tasks are active as the job allows.
func (j *job) atMaxRunning() bool { return j.startableTasks() == 0 }

// full reports whether no task of a class may start beside those of its job that are
// active. An operator's word goes past that.
func (c *taskClass) full() bool { return c.spec.now == "" && c.job.atMaxRunning() }

// most is how many ready tasks of a job's share may count in its request.
func (s *jobReady) most(j *job) int {
	if s.request.Now {
		return s.count
	}
	return min(s.count, j.startableTasks())
}

// startableTasks is how many more tasks may be active. Those that are suspended do not
// count (OpenPBS, max_run_subjobs).
func (j *job) startableTasks() int {
	if j.spec.maxRunning <= 0 {
		return len(j.state)
	}
	n := max(j.spec.maxRunning*j.tasksPerIndex()-j.active-j.releasedActive()+j.counts[roost.Suspended], 0)
	return n - n%j.tasksPerIndex()
}

// waitsForTimeOnly reports whether the job waits for its start time, and for no other
// job.
func (j *job) waitsForTimeOnly() bool {
	return !j.startTimeReached && len(j.dependencies) == 0 && j.expectedBefore == 0 && j.expectedSync == 0 &&
		!j.runOneStarted
}
