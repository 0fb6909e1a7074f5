package queue

import (
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// The tasks of a job are counted from 0 in here, on the wire between daemons and on disk.
// Users know the tasks of an array by the indexes that they gave it (qsub -J 10-20:5
// makes 12[10], 12[15] and 12[20]), and by nothing else: what they say is located, and
// what they are told is named. This is the only place where one becomes the other.

// ErrNoSubjob says that an array has no task of that index.
var ErrNoSubjob = fmt.Errorf("%w: the array has no such index", roost.NotFound)

// ErrEndedSubjob says that a task of an array has ended while the array goes on.
var ErrEndedSubjob = fmt.Errorf("%w, though its array has not", roost.Finished)

// LocateTasks makes of the indexes that a user said the tasks that have them. A single
// index that the job does not have is ErrNoSubjob; ranges stand for those indexes in them
// that there are (OpenPBS), and one without any is ErrNoSubjob, too. A job that is not in
// this queue is left as it was said.
func (q *jobTable) LocateTasks(t TaskSelector) (TaskSelector, error) {
	j := q.jobs[t.Job.Seq]
	if j == nil && len(t.Ranges) == 0 {
		if task, ok := taskOfNumber(q, t.Job.Seq); ok {
			t.Job.Seq, j = task.Job.Seq, q.jobs[task.Job.Seq]
			t.Ranges = []eventlog.IndexRange{{First: task.Index, Last: task.Index + j.tasksPerIndex() - 1}}
			t.userText = j.indexText(task.Index, task.Index)
		}
		return t, nil
	}
	if j == nil || len(t.Ranges) == 0 || t.userText != "" {
		return t, nil
	}
	at := TaskSelector{Job: t.Job, userText: t.rangeText()}
	for _, r := range t.Ranges {
		first, end := j.firstFromIndex(r.First)*j.tasksPerIndex(), j.firstFromIndex(r.Last+1)*j.tasksPerIndex()
		switch n := len(at.Ranges); {
		case first >= end:
		case n > 0 && at.Ranges[n-1].Last == first-1:
			at.Ranges[n-1].Last = end - 1
		default:
			at.Ranges = append(at.Ranges, eventlog.IndexRange{First: first, Last: end - 1})
		}
	}
	if len(at.Ranges) == 0 {
		return t, fmt.Errorf("%v: %w: it has %s", t, ErrNoSubjob, j.indexText(0, len(j.state)-1))
	}
	return at, nil
}

// firstFromIndex is the first task of the user's whose index is at least that, or how
// many there are.
func (j *job) firstFromIndex(index int) int {
	if j.indexes == nil {
		return min(index, len(j.state)/j.tasksPerIndex())
	}
	return j.indexes.FirstTaskFrom(index)
}

// indexText writes the indexes of the tasks first to last.
func (j *job) indexText(first, last int) string {
	first, last = first/j.tasksPerIndex(), last/j.tasksPerIndex()
	if j.indexes == nil {
		return eventlog.IndexRange{First: first, Last: last}.String()
	}
	return j.indexes.RangeText(first, last)
}

// UserIndex is the one that users know a task by.
func (q *jobTable) UserIndex(t roost.TaskID) int {
	j := q.jobs[t.Job.Seq]
	if j == nil || t.Index < 0 || t.Index >= len(j.state) {
		return t.Index
	}
	return j.names().index(t.Index)
}

// TaskNames is what users call the tasks of a job. It does not change as the job goes on.
type TaskNames struct {
	indexes       *roost.ArrayIndexes
	tasksPerIndex int // so many tasks have one index; 0 is 1
	mpiGangSize   int // so many are a gang that one leads; 0 is 1
	flow          *jobFlow
}

func (j *job) names() TaskNames {
	n := TaskNames{indexes: j.indexes, tasksPerIndex: j.tasksPerIndex(), flow: j.flow}
	if j.spec.MPIGang {
		n.mpiGangSize = j.spec.GangSize
	}
	return n
}

// GangPart is which part of its gang a task is: 0 for the leader, and for tasks without
// one.
func (n TaskNames) GangPart(task int) int { return task % max(n.mpiGangSize, 1) }

// FlowEvents says in words what has happened to a flow.
func (n TaskNames) FlowEvents(e *eventlog.JobEvent) string {
	if n.flow == nil || n.flow.run == nil {
		return ""
	}
	var parts []string
	for _, step := range e.FlowEvents {
		parts = append(parts, n.flow.describe(step))
	}
	return strings.Join(parts, "; ")
}

// TaskNames is what users call the tasks of a job; of one that is not here, their own
// numbers.
func (q *jobTable) TaskNames(seq uint64) TaskNames {
	if j := q.jobs[seq]; j != nil {
		return j.names()
	}
	return TaskNames{}
}

// TaskName is what users call a task: "12[15].host".
func (q *jobTable) TaskName(t roost.TaskID) string { return q.TaskNames(t.Job.Seq).TaskName(t) }

// TaskName is what users call a task.
func (n TaskNames) TaskName(t roost.TaskID) string {
	return n.Tasks(t.Job, []eventlog.IndexRange{{First: t.Index, Last: t.Index}})
}

func (n TaskNames) index(task int) int {
	task /= max(n.tasksPerIndex, 1)
	if n.indexes == nil || task >= n.indexes.Len() {
		return task
	}
	return n.indexes.IndexOf(task)
}

// Tasks is what users call some tasks of a job, "12[10,20].host"; without any, the job.
func (n TaskNames) Tasks(job roost.JobID, ranges []eventlog.IndexRange) string {
	if n.indexes == nil && n.tasksPerIndex < 2 || len(ranges) == 0 {
		return TaskSelector{Job: job, Ranges: ranges}.String()
	}
	parts := make([]string, min(len(ranges), maxWritten))
	for i, r := range ranges[:len(parts)] {
		r = eventlog.IndexRange{First: r.First / max(n.tasksPerIndex, 1), Last: r.Last / max(n.tasksPerIndex, 1)}
		if n.indexes == nil {
			parts[i] = r.String()
			continue
		}
		parts[i] = n.indexes.RangeText(r.First, min(r.Last, n.indexes.Len()-1))
	}
	return TaskSelector{Job: job, Ranges: ranges, userText: strings.Join(parts, ",")}.String()
}

// endedSubjob reports whether a target is one task of an array that has ended, and its
// array has not.
func (j *job) endedSubjob(t TaskSelector) bool {
	i, one := j.singleTask(t)
	return j.spec.Array && one && j.state[i].IsFinal() && !j.isFinal()
}

// singleTask is the task that a target names, if it names exactly one. Of several tasks
// that have an index between them it is the one that leads.
func (j *job) singleTask(t TaskSelector) (i int, ok bool) {
	if len(t.Ranges) != 1 {
		return 0, false
	}
	r := t.Ranges[0]
	return r.First, r.Last-r.First+1 == j.tasksPerIndex() && r.First < len(j.state)
}

// SingleTask is the task that a located target names. It is false for a job, and for
// several tasks.
func (q *jobTable) SingleTask(t TaskSelector) (roost.TaskID, bool) {
	j := q.jobs[t.Job.Seq]
	if j == nil {
		return roost.TaskID{}, false
	}
	i, ok := j.singleTask(t)
	return t.Job.Task(i), ok
}

// Intersect is what of a target lies between two tasks, both included; without a range if
// nothing does.
func (t TaskSelector) Intersect(first, last int) TaskSelector {
	part := TaskSelector{Job: t.Job, userText: t.userText}
	if len(t.Ranges) == 0 {
		part.Ranges = []eventlog.IndexRange{{First: first, Last: last}}
	}
	for _, r := range t.Ranges {
		if r.First <= last && r.Last >= first {
			part.Ranges = append(part.Ranges, eventlog.IndexRange{First: max(r.First, first), Last: min(r.Last, last)})
		}
	}
	return part
}

// rangeText writes the ranges of a target.
func (t TaskSelector) rangeText() string {
	if t.userText != "" {
		return t.userText
	}
	parts := make([]string, 0, min(len(t.Ranges), maxWritten))
	for r := range slices.Values(t.Ranges[:min(len(t.Ranges), maxWritten)]) {
		parts = append(parts, r.String())
	}
	if len(t.Ranges) > maxWritten {
		parts = append(parts, "…")
	}
	return strings.Join(parts, ",")
}

// maxWritten bounds how many ranges are written where somebody reads them.
const maxWritten = 1000

// The tasks of an array of sbatch have numbers of their own, which follow each other from
// the array's number on. No other job has any of them. Clients of Slurm know tasks by
// these numbers, and everything else takes them for names of the tasks.

// numberCount is how many numbers a job takes.
func numberCount(p *jobad.JobSpec, tasks int) uint64 {
	if p.Slurm == nil || !p.Array {
		return 1
	}
	return uint64(max(tasks/p.TasksPerIndex(), 1))
}

// NumbersOf is how many numbers a job takes that was submitted so.
func NumbersOf(s *eventlog.SubmittedJob) uint64 {
	p, _, err := jobad.NewSpecReader().ReadText(s.Ad)
	if err != nil {
		return 1
	}
	return numberCount(&p.JobSpec, s.Count)
}

// addNumbers takes the numbers of a job.
func addNumbers(q *jobTable, j *job) {
	count := numberCount(&j.spec.JobSpec, len(j.state))
	q.lastSeq = max(q.lastSeq, j.seq+count-1)
	if count == 1 {
		return
	}
	at, there := slices.BinarySearch(q.numbered, j.seq)
	if !there {
		q.numbered = slices.Insert(q.numbered, at, j.seq)
	}
}

// removeNumbers forgets the numbers of a job that is gone.
func removeNumbers(q *jobTable, j *job) {
	if at, there := slices.BinarySearch(q.numbered, j.seq); there {
		q.numbered = slices.Delete(q.numbered, at, at+1)
	}
}

// taskOfNumber is the first task that has a number of its own.
func taskOfNumber(q *jobTable, number uint64) (t roost.TaskID, ok bool) {
	at, there := slices.BinarySearch(q.numbered, number)
	if !there {
		at--
	}
	if at < 0 {
		return t, false
	}
	j := q.jobs[q.numbered[at]]
	position := number - j.seq
	if position >= numberCount(&j.spec.JobSpec, len(j.state)) {
		return t, false
	}
	return j.id(q.host).Task(int(position) * j.tasksPerIndex()), true
}

// JobOfNumber is the job that has a number, or a task with it.
func JobOfNumber(q *Queue, number uint64) uint64 {
	if t, ok := taskOfNumber(q.jobTable, number); ok && q.jobs[number] == nil {
		return t.Job.Seq
	}
	return number
}

// taskNumber is the number of a task, which is that of its job unless it has its own.
func taskNumber(j *job, task int) uint64 {
	if numberCount(&j.spec.JobSpec, len(j.state)) == 1 {
		return j.seq
	}
	return j.seq + uint64(task/j.tasksPerIndex())
}
