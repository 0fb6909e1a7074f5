package queue

import (
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// The tasks of a job are counted from 0 in here, on the wire between daemons and on disk. Users know the tasks of an array by the indexes that they
// gave it (qsub -J 10-20:5 makes 12[10], 12[15] and 12[20]), and by nothing else: what they say is located, and what they are told is named. This is
// the only place where one becomes the other.

// ErrNoSubjob says that an array has no task of that index.
var ErrNoSubjob = fmt.Errorf("%w: the array has no such index", roost.NotFound)

// ErrEndedSubjob says that a task of an array has ended while the array goes on.
var ErrEndedSubjob = fmt.Errorf("%w, though its array has not", roost.Finished)

// Locate makes of the indexes that a user said the tasks that have them. A single index that the job does not have is ErrNoSubjob; ranges stand for
// those indexes in them that there are (OpenPBS), and one without any is ErrNoSubjob, too. A job that is not in this queue is left as it was said.
func (q *Queue) Locate(t Target) (Target, error) {
	j := q.jobs[t.Job.Seq]
	if j == nil || len(t.Ranges) == 0 || t.said != "" {
		return t, nil
	}
	at := Target{Job: t.Job, said: t.spelled()}
	for _, r := range t.Ranges {
		first, end := j.from(r.First)*j.stride(), j.from(r.Last+1)*j.stride()
		switch n := len(at.Ranges); {
		case first >= end:
		case n > 0 && at.Ranges[n-1].Last == first-1:
			at.Ranges[n-1].Last = end - 1
		default:
			at.Ranges = append(at.Ranges, Range{first, end - 1})
		}
	}
	if len(at.Ranges) == 0 {
		return t, fmt.Errorf("%v: %w: it has %s", t, ErrNoSubjob, j.spell(0, len(j.state)-1))
	}
	return at, nil
}

// from is the first task of the user's whose index is at least that, or how many there are.
func (j *job) from(index int) int {
	if j.indexes == nil {
		return min(index, len(j.state)/j.stride())
	}
	return j.indexes.From(index)
}

// spell writes the indexes of the tasks first to last.
func (j *job) spell(first, last int) string {
	first, last = first/j.stride(), last/j.stride()
	if j.indexes == nil {
		return Range{first, last}.String()
	}
	return j.indexes.Of(first, last)
}

// Index is the one that users know a task by.
func (q *Queue) Index(t roost.TaskID) int {
	j := q.jobs[t.Job.Seq]
	if j == nil || t.Index < 0 || t.Index >= len(j.state) {
		return t.Index
	}
	return j.names().index(t.Index)
}

// Names is what users call the tasks of a job. It does not change as the job goes on.
type Names struct {
	indexes *roost.Indexes
	stride  int // so many tasks have one index; 0 is 1
	led     int // so many are a gang that one leads; 0 is 1
}

func (j *job) names() Names {
	n := Names{indexes: j.indexes, stride: j.stride()}
	if j.plan.led {
		n.led = j.plan.gang
	}
	return n
}

// Chunk is which part of its gang a task is: 0 for the one that leads, and for any that none leads.
func (n Names) Chunk(task int) int { return task % max(n.led, 1) }

// Names is what users call the tasks of a job; of one that is not here, their own numbers.
func (q *Queue) Names(seq uint64) Names {
	if j := q.jobs[seq]; j != nil {
		return j.names()
	}
	return Names{}
}

// Name is what users call a task: "12[15].host".
func (q *Queue) Name(t roost.TaskID) string { return q.Names(t.Job.Seq).Task(t) }

// Task is what users call a task.
func (n Names) Task(t roost.TaskID) string { return n.All(t.Job, []Range{{t.Index, t.Index}}) }

func (n Names) index(task int) int {
	task /= max(n.stride, 1)
	if n.indexes == nil || task >= n.indexes.Len() {
		return task
	}
	return n.indexes.At(task)
}

// All is what users call some tasks of a job, "12[10,20].host"; without any, the job.
func (n Names) All(job roost.JobID, ranges []Range) string {
	if n.indexes == nil && n.stride < 2 || len(ranges) == 0 {
		return Target{Job: job, Ranges: ranges}.String()
	}
	parts := make([]string, min(len(ranges), maxSpelled))
	for i, r := range ranges[:len(parts)] {
		r = Range{r.First / max(n.stride, 1), r.Last / max(n.stride, 1)}
		if n.indexes == nil {
			parts[i] = r.String()
			continue
		}
		parts[i] = n.indexes.Of(r.First, min(r.Last, n.indexes.Len()-1))
	}
	return Target{Job: job, Ranges: ranges, said: strings.Join(parts, ",")}.String()
}

// endedSubjob reports whether a target is one task of an array that has ended, and its array has not.
func (j *job) endedSubjob(t Target) bool {
	i, one := j.one(t)
	return j.plan.array && one && j.state[i].Final() && !j.final()
}

// one is the task that a target names, if it names one of the user's: of several that have an index between them, the one that leads.
func (j *job) one(t Target) (i int, ok bool) {
	if len(t.Ranges) != 1 {
		return 0, false
	}
	r := t.Ranges[0]
	return r.First, r.Last-r.First+1 == j.stride() && r.First < len(j.state)
}

// One is the task that a located target names, if it names one; false for a job, and for several tasks.
func (q *Queue) One(t Target) (roost.TaskID, bool) {
	j := q.jobs[t.Job.Seq]
	if j == nil {
		return roost.TaskID{}, false
	}
	i, ok := j.one(t)
	return t.Job.Task(i), ok
}

// indexesOf reads the indexes that an ad gives the tasks of a job; nil where they have none but their own numbers.
func indexesOf(text string, tasks int) *roost.Indexes {
	if text == "" {
		return nil
	}
	x, err := roost.ParseIndexes(text)
	if err != nil || x.Len() != tasks {
		return nil
	}
	return &x
}

// checkIndexes checks that an ad that names indexes has one for each task.
func checkIndexes(ad *classad.Ad, tasks int) error {
	if _, ok := ad.Lookup(roost.AttrArrayIndex); !ok {
		return nil
	}
	text, _ := ad.Str(roost.AttrArrayIndex)
	switch x, err := roost.ParseIndexes(text); {
	case err != nil:
		return fmt.Errorf("attribute %s: %w: %w", roost.AttrArrayIndex, roost.Invalid, err)
	case x.Len() != tasks:
		return fmt.Errorf("attribute %s: %w: %q are %d indexes, and the job has %d tasks", roost.AttrArrayIndex, roost.Invalid, text, x.Len(), tasks)
	}
	return nil
}

// Within is what of a target lies between two tasks, both included; without a range if nothing does.
func (t Target) Within(first, last int) Target {
	part := Target{Job: t.Job, said: t.said}
	if len(t.Ranges) == 0 {
		part.Ranges = []Range{{first, last}}
	}
	for _, r := range t.Ranges {
		if r.First <= last && r.Last >= first {
			part.Ranges = append(part.Ranges, Range{max(r.First, first), min(r.Last, last)})
		}
	}
	return part
}

// spelled writes the ranges of a target.
func (t Target) spelled() string {
	if t.said != "" {
		return t.said
	}
	parts := make([]string, 0, min(len(t.Ranges), maxSpelled))
	for r := range slices.Values(t.Ranges[:min(len(t.Ranges), maxSpelled)]) {
		parts = append(parts, r.String())
	}
	if len(t.Ranges) > maxSpelled {
		parts = append(parts, "…")
	}
	return strings.Join(parts, ",")
}

// maxSpelled bounds how many ranges are written where somebody reads them.
const maxSpelled = 1000
