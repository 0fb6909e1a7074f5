package store

import (
	"cmp"
	"math/bits"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// jobKey is the key of a job in the tables.
type jobKey struct {
	month  accounting.Month
	source int64
	seq    int64
}

// attemptKey is the key of an attempt in the tables.
type attemptKey struct {
	jobKey
	index   int64
	attempt int64
}

func (k attemptKey) compare(o attemptKey) int {
	return cmp.Or(cmp.Compare(k.month, o.month), cmp.Compare(k.source, o.source), cmp.Compare(k.seq, o.seq),
		cmp.Compare(k.index, o.index), cmp.Compare(k.attempt, o.attempt))
}

// jobNames are the columns of a job by which its attempts are counted.
type jobNames struct {
	owner, group, project, queue int64
	band                         roost.PriorityBand
	eligible                     accounting.Millis
}

// jobRow is a row of the table job.
type jobRow struct {
	jobKey
	number int64
	names  jobNames
	isNew  bool  // no row of the key is stored
	values []any // in the order of the columns
}

// attemptRow is a row of the table attempt.
type attemptRow struct {
	attemptKey
	number int64
	placed placedAttempt
	isNew  bool // no row of the key is stored
	values []any
}

// ownerColumn is the place of owner in attemptRow.values.
const ownerColumn = 6

// placedAttempt is the time in which an attempt counts.
type placedAttempt struct {
	begin, end accounting.Millis // of the attempt; end is 0 if it runs
}

// keyedRow is a row of the tables action and usage.
type keyedRow struct {
	month  accounting.Month
	number int64
	values []any
}

// The bounds of amounts. What is outside comes from a broken node, and sums of it would
// overflow.
const (
	maxAttemptMillis = 10 * 366 * int64(accounting.DayMillis)
	maxMilliCPU      = 100_000_000
	maxBytes         = int64(64 * roost.PiB)
	maxGPUs          = 100_000
	longestSpan      = 17 // log2 of the hours of maxAttemptMillis and a day, rounded up
)

func bounded[T ~int64](v T, most int64) int64 { return min(max(int64(v), 0), most) }

func boundedResources(r roost.Resources) roost.Resources {
	return roost.Resources{
		CPU: roost.MilliCPU(bounded(r.CPU, maxMilliCPU)), Memory: roost.Bytes(bounded(r.Memory, maxBytes)),
		Disk: roost.Bytes(bounded(r.Disk, maxBytes)), GPUs: min(max(r.GPUs, 0), maxGPUs),
		GPUMemory: roost.Bytes(bounded(r.GPUMemory, maxBytes)),
	}
}

func boolNumber(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func encodeJob(j *accounting.JobEntry, key jobKey, number int64, names *nameDraft) *jobRow {
	q := boundedResources(j.Request)
	n := jobNames{
		owner: names.id(ownerName, j.Owner), group: names.id(groupName, j.Group),
		project: names.id(projectName, j.Project), queue: names.id(queueName, j.Queue), band: j.Band,
		eligible: j.Eligible,
	}
	return &jobRow{jobKey: key, number: number, names: n, values: []any{
		int64(key.month), key.source, key.seq, number, cleanText(j.Name, maxTextBytes), n.owner, int64(j.UID),
		int64(j.GID),
		names.id(unixGroupName, j.UnixGroup), n.group, n.project, int64(j.Band), n.queue, boolNumber(j.Array),
		int64(j.Tasks),
		int64(q.CPU), int64(q.Memory), int64(q.Disk), int64(q.GPUs), int64(q.GPUMemory), bounded(j.Walltime, 1<<62),
		cleanText(j.Arguments, maxTextBytes), cleanText(j.WorkDir, maxTextBytes),
		int64(j.Submitted), int64(j.Eligible), int64(j.Ended), boolNumber(j.Removed),
	}}
}

// boundAttempt returns a copy whose amounts are within the bounds.
func boundAttempt(a *accounting.AttemptEntry) accounting.AttemptEntry {
	b := *a
	b.Held, b.Peak = boundedResources(a.Held), boundedResources(a.Peak)
	b.Wall = bounded(a.Wall, maxAttemptMillis)
	b.UserCPU, b.SystemCPU = bounded(a.UserCPU, 1<<50), bounded(a.SystemCPU, 1<<50)
	b.Suspended, b.Useful = bounded(a.Suspended, b.Wall), bounded(a.Useful, b.Wall)
	b.Read, b.Written = bounded(a.Read, 1<<62), bounded(a.Written, 1<<62)
	b.Node, b.AppClass = cleanText(a.Node, maxNameBytes), cleanText(a.AppClass, maxNameBytes)
	b.Reason = cleanText(a.Reason, maxTextBytes)
	b.Segments = append([]accounting.Segment(nil), a.Segments[:min(len(a.Segments), maxSegments)]...)
	for i := range b.Segments {
		b.Segments[i].Held = boundedResources(b.Segments[i].Held)
		b.Segments[i].Wall = bounded(b.Segments[i].Wall, b.Wall)
	}
	return b
}

// spanClass returns log2 of the hours between two times, rounded up.
func spanClass(begin, end accounting.Millis) int64 {
	hours := (end - begin + accounting.HourMillis - 1) / accounting.HourMillis
	if hours <= 1 {
		return 0
	}
	return int64(min(bits.Len64(uint64(hours-1)), longestSpan))
}

// spanMillis returns the longest time of a class.
func spanMillis(class int64) accounting.Millis { return accounting.HourMillis << class }

func encodeAttempt(entry *accounting.AttemptEntry, key attemptKey, number int64, names *nameDraft) *attemptRow {
	a := boundAttempt(entry)
	span, place := int64(-1), placedAttempt{begin: a.Started}
	if a.Ended != 0 {
		place.begin, place.end = a.Span(a.Ended)
		span = spanClass(place.begin, place.end)
	}
	return &attemptRow{attemptKey: key, number: number, placed: place, values: []any{
		int64(key.month), key.source, key.seq, key.index, key.attempt, number, int64(0),
		names.id(nodeName, a.Node), names.id(className, a.AppClass),
		int64(a.Assigned), int64(a.Started), int64(a.Ended),
		int64(a.Held.CPU), int64(a.Held.Memory), int64(a.Held.Disk), int64(a.Held.GPUs), int64(a.Held.GPUMemory),
		a.Wall, a.UserCPU, a.SystemCPU, a.Suspended, a.Useful,
		int64(a.Peak.Memory), int64(a.Peak.Disk), int64(a.Peak.GPUMemory), a.Read, a.Written,
		int64(a.Cause), int64(a.ExitCode), int64(a.Signal), a.Reason, packSegments(a.Segments), span,
		int64(place.begin),
	}}
}

func encodeAction(a *accounting.JobAction, key jobKey, number int64, names *nameDraft) keyedRow {
	return keyedRow{key.month, number, []any{
		int64(key.month), key.source, key.seq, int64(a.Time), int64(a.Index), names.id(actionName, a.What),
		names.id(personName, a.By), number, cleanText(a.Reason, maxTextBytes),
	}}
}

func encodeUsage(u *accounting.UsageHour, key attemptKey, number int64) keyedRow {
	return keyedRow{key.month, number, []any{
		int64(key.month), key.source, key.seq, key.index, key.attempt, int64(u.Hour.Hour()), number,
		packWindows(&u.Windows),
	}}
}
