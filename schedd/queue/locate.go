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
		first, end := j.from(r.First), j.from(r.Last+1)
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

// from is the first task whose index is at least that, or how many tasks there are.
func (j *job) from(index int) int {
	if j.indexes == nil {
		return min(index, len(j.state))
	}
	return j.indexes.From(index)
}

// spell writes the indexes of the tasks first to last.
func (j *job) spell(first, last int) string {
	if j.indexes == nil {
		return Range{first, last}.String()
	}
	return j.indexes.Of(first, last)
}

// Index is the one that users know a task by.
func (q *Queue) Index(t roost.TaskID) int {
	if j := q.jobs[t.Job.Seq]; j != nil && j.indexes != nil && t.Index >= 0 && t.Index < len(j.state) {
		return j.indexes.At(t.Index)
	}
	return t.Index
}

// Names is what users call the tasks of a job. It does not change as the job goes on.
type Names struct{ indexes *roost.Indexes }

// Names is what users call the tasks of a job; of one that is not here, their own numbers.
func (q *Queue) Names(seq uint64) Names {
	if j := q.jobs[seq]; j != nil {
		return Names{j.indexes}
	}
	return Names{}
}

// Name is what users call a task: "12[15].host".
func (q *Queue) Name(t roost.TaskID) string { return q.Names(t.Job.Seq).Task(t) }

// Task is what users call a task.
func (n Names) Task(t roost.TaskID) string { return n.All(t.Job, []Range{{t.Index, t.Index}}) }

// All is what users call some tasks of a job, "12[10,20].host"; without any, the job.
func (n Names) All(job roost.JobID, ranges []Range) string {
	if n.indexes == nil || len(ranges) == 0 {
		return Target{Job: job, Ranges: ranges}.String()
	}
	parts := make([]string, min(len(ranges), maxSpelled))
	for i, r := range ranges[:len(parts)] {
		parts[i] = n.indexes.Of(r.First, min(r.Last, n.indexes.Len()-1))
	}
	return Target{Job: job, Ranges: ranges, said: strings.Join(parts, ",")}.String()
}

// endedSubjob reports whether a target is one task of an array that has ended, and its array has not.
func (j *job) endedSubjob(t Target) bool {
	return j.plan.array && len(t.Ranges) == 1 && t.Ranges[0].First == t.Ranges[0].Last && j.state[t.Ranges[0].First].Final() && !j.final()
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
