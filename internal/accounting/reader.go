package accounting

import (
	"iter"
	"strings"

	"github.com/roost-batch/roost"
)

// Reader reads what a store has. It is bound to the context that it was made with: when
// that ends, each method and iterator ends with its error. An iterator yields at most one
// error, as its last element. Records belong to the caller.
type Reader interface {
	// Job returns the job seq.host, or an error that is roost.NotFound.
	Job(host string, seq uint64) (JobEntry, error)

	// JobAttempts returns the attempts of a job in the order of index and attempt.
	JobAttempts(key JobKey) iter.Seq2[AttemptEntry, error]

	// JobActions returns what was done to a job, in the order of time.
	JobActions(key JobKey) iter.Seq2[JobAction, error]

	// Jobs returns the jobs of a selection. ByStart goes by Eligible.
	Jobs(s Selection) iter.Seq2[JobEntry, error]

	// Attempts returns the attempts of a selection, each with its job.
	Attempts(s Selection) iter.Seq2[AttemptRecord, error]

	// Actions returns what was done to jobs in a range, in the order of time.
	Actions(r TimeRange) iter.Seq2[JobAction, error]

	// Usage returns the hours of a range, in the order of hour and key.
	Usage(r TimeRange) iter.Seq2[UsageHour, error]

	// AttemptUsage returns the hours of one attempt.
	AttemptUsage(key AttemptKey) iter.Seq2[UsageHour, error]

	// JobUsage returns the hours of a job's tasks from first to last, in the order of
	// index, attempt and hour.
	JobUsage(key JobKey, first, last int) iter.Seq2[UsageRecord, error]

	// Machines returns the events of machines of a range, in the order of time.
	Machines(r TimeRange) iter.Seq2[MachineEvent, error]

	// MachinesAt returns the last event before a time of each machine that was then a
	// part of the pool.
	MachinesAt(t Millis) iter.Seq2[MachineEvent, error]
}

// AttemptRecord is an attempt with its job. Job is shared by the attempts of a job: do
// not change it. Where the job is unknown it has the key alone.
type AttemptRecord struct {
	AttemptEntry
	Job *JobEntry
}

// TimeField is the time of a record that a selection goes by.
type TimeField uint8

// The times of records. A record whose time is 0 is in no selection by it: ByEnd has only
// what has ended.
const (
	ByEnd    TimeField = iota // Ended
	BySubmit                  // Submitted of the job
	ByStart                   // Started of an attempt, Eligible of a job
)

// Selection says which records to read. Records come in the order of the time of By;
// those of one time come in an order of their keys that does not change.
type Selection struct {
	Range      TimeRange // of the time of By
	By         TimeField
	Filter     Filter
	Descending bool      // the latest first
	After      *Position // only what comes after it, in that order
	Limit      int       // at most as many; 0: all
}

// Position is the place of a record in the order of a selection. It is unique.
type Position struct {
	Time Millis
	AttemptKey
}

// Filter says which records count. An empty field is no condition. The conditions of a
// filter hold together.
type Filter struct {
	Owner   string
	Group   string // with all groups below it
	Project string
	Queue   string
	Bands   BandSet
	Host    string // of the schedd
	Node    string // attempts only
	Cause   EndCause
}

// BandSet is a set of bands. The empty set is no condition.
type BandSet uint8

// Bands returns a set of bands.
func Bands(bands ...roost.PriorityBand) (s BandSet) {
	for _, b := range bands {
		s |= 1 << b
	}
	return s
}

// Has reports whether a filter with this set lets a band pass.
func (s BandSet) Has(b roost.PriorityBand) bool { return s == 0 || s&(1<<b) != 0 }

// InGroup reports whether group is top or below it in the tree of groups.
func InGroup(group, top string) bool {
	rest, ok := strings.CutPrefix(group, top)
	return ok && (rest == "" || rest[0] == '.')
}

// MatchesJob reports whether the conditions on jobs hold for a job.
func (f *Filter) MatchesJob(j *JobEntry) bool {
	return (f.Owner == "" || f.Owner == j.Owner) && (f.Group == "" || InGroup(j.Group, f.Group)) &&
		(f.Project == "" || f.Project == j.Project) && (f.Queue == "" || f.Queue == j.Queue) &&
		(f.Host == "" || f.Host == j.Host) && f.Bands.Has(j.Band)
}

// MatchesAttempt reports whether all conditions hold for an attempt.
func (f *Filter) MatchesAttempt(a *AttemptRecord) bool {
	return (f.Node == "" || f.Node == a.Node) && (f.Cause == NotEnded || f.Cause == a.Cause) && f.MatchesJob(a.Job)
}
