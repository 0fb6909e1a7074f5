package queue

import (
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// job is one job in the queue. States take a byte for each task, and a bit while it is
// ready; what else is known of tasks is in the book.
type job struct {
	seq            uint64
	submission     *eventlog.SubmittedJob
	ad             *classad.Ad
	spec           jobad.JobSpec
	submitted      int64 // unix nanoseconds
	state          []roost.TaskState
	counts         [roost.Removed + 1]int
	failed         int // of the completed ones
	records        eventlog.TaskRecords
	firstStarted   int64 // when a task of it first started, unix nanoseconds; 0 for not yet
	lastEnded      int64 // when a task of it last became final
	classes        []*taskClass
	shares         []*jobReady            // of its classes, by request
	shareByRequest map[*Request]*jobReady // of an array of gangs, which has very many
	readyDeferred  bool                   // its tasks change together: they are counted afterwards
	classOf        []uint16               // empty when there is one class
	jobWaits
	active        int // tasks with a live attempt
	gangs         gangState
	columns       map[string]*packedColumn
	indexes       *roost.ArrayIndexes // that users know the tasks of an array by; nil: their own numbers
	changes       int                 // what has happened to it, counted
	countedDemand QuotaDemand         // what of its demand is in the queue's sums
	alterations   int64               // how often
	// by the values of its columns: the class of tasks with these, where they differ
	classByValues map[string]int
	// its place among jobs of one priority: its number, unless somebody has swapped it
	// with another's
	orderRank uint64
	orderTime int64 // likewise its age: when it was submitted, unix nanoseconds
	eligible  eligibleTime
	distrust  recordDamage
	runOrders
	// secondary tasks whose machines were given back while their gang ran, or runs
	released map[int]bool
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

// atMaxRunning reports whether as many tasks are active as the job allows.
func (j *job) atMaxRunning() bool { return j.startableTasks() == 0 }

// startableTasks is how many more tasks may be active. Those that are suspended do not
// count (OpenPBS, max_run_subjobs).
func (j *job) startableTasks() int {
	if j.spec.MaxRunning <= 0 {
		return len(j.state)
	}
	n := max(j.spec.MaxRunning*j.tasksPerIndex()-j.active-j.release().releasedActive()+j.counts[roost.Suspended], 0)
	return n - n%j.tasksPerIndex()
}
