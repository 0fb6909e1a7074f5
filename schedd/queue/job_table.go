package queue

import (
	"fmt"
	"maps"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue/adtext"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// jobTable is the jobs of the queue by their numbers. All parts of the queue share it.
type jobTable struct {
	host      string
	lastSeq   uint64 // the highest number that was given to a job
	jobs      map[uint64]*job
	numbered  []uint64                // jobs whose tasks have numbers of their own, in order
	schedules map[uint64]*jobSchedule // by their jobs
	flows     map[uint64]*jobFlow     // by their jobs
	runs      map[uint64][]uint64     // those in the queue that schedules made, by the job of the schedule
	inside    map[uint64][]uint64     // jobs inside alloc sets, by these
	services  map[uint64]bool         // jobs that are services
	scaled    map[uint64]bool         // of these, those whose number of tasks follows their load

	// what jobs share
	specs       *jobad.SpecReader
	adTexts     *adtext.Packer
	submissions map[submissionKind]*jobSubmission
	noExtras    *jobExtras
}

func newJobTable(host string) *jobTable {
	return &jobTable{host: host, jobs: map[uint64]*job{}, schedules: map[uint64]*jobSchedule{},
		flows: map[uint64]*jobFlow{},
		runs:  map[uint64][]uint64{}, inside: map[uint64][]uint64{},
		services: map[uint64]bool{}, scaled: map[uint64]bool{},
		specs: jobad.NewSpecReader(), adTexts: adtext.NewPacker(),
		submissions: map[submissionKind]*jobSubmission{}, noExtras: noExtras()}
}

// Len is the number of jobs.
func (q *jobTable) Len() int { return len(q.jobs) }

// IsLive reports whether an attempt is its task's present one and has not ended.
func (q *jobTable) IsLive(a roost.AttemptID) bool {
	j := q.jobs[a.Task.Job.Seq]
	if j == nil {
		return false
	}
	r := j.records.Own(a.Task.Index)
	return r != nil && r.Live && r.Attempt == a.Attempt
}

// IsRemoving reports whether an attempt is live and its task is to be removed when it has
// ended.
func (q *jobTable) IsRemoving(a roost.AttemptID) bool {
	return q.IsLive(a) && q.jobs[a.Task.Job.Seq].records.Own(a.Task.Index).RemoveWanted
}

// IsFinal reports whether a task has ended for good, or is not there.
func (q *jobTable) IsFinal(t roost.TaskID) bool {
	j := q.jobs[t.Job.Seq]
	return j == nil || t.Index < 0 || t.Index >= len(j.state) || j.state[t.Index].IsFinal()
}

// NodeOf is where a live attempt is; empty for any other.
func (q *jobTable) NodeOf(a roost.AttemptID) string {
	if !q.IsLive(a) {
		return ""
	}
	return q.jobs[a.Task.Job.Seq].records.Own(a.Task.Index).Node
}

// ActiveAttempt is an attempt that is live, as recovery wants to know it.
type ActiveAttempt struct {
	Attempt   roost.AttemptID
	Request   *Request
	Node      string
	Address   string
	Claim     uint64
	StartTime bool
	Alloc     roost.AttemptID // that holds the alloc inside which it is; zero: it is inside none
	// the claim of that, if it is live
	AllocClaim uint64
}

// ActiveAttempts lists the live attempts, in order of their ids.
func (q *jobTable) ActiveAttempts() []ActiveAttempt {
	var out []ActiveAttempt
	for _, seq := range slices.Sorted(maps.Keys(q.jobs)) {
		j := q.jobs[seq]
		if j.active == 0 {
			continue
		}
		for i := range j.state {
			if r := j.records.Own(i); r != nil && r.Live {
				id := roost.AttemptID{Task: j.id(q.host).Task(i), Attempt: r.Attempt}
				a := ActiveAttempt{Attempt: id, Request: j.class(i).request, Node: r.Node, Address: r.Address,
					Claim: r.Claim, StartTime: r.Started != 0}
				a.Alloc, a.AllocClaim = allocOf(q, j, r)
				out = append(out, a)
			}
		}
	}
	return out
}

// RequestOf returns the request that a task belongs to.
func (q *jobTable) RequestOf(t roost.TaskID) (*Request, bool) {
	j := q.jobs[t.Job.Seq]
	if j == nil || t.Index < 0 || t.Index >= len(j.state) {
		return nil, false
	}
	return j.class(t.Index).request, true
}

// LastSeq is the highest number that was given to a job; Resume raises it after a
// restart.
func (q *jobTable) LastSeq() uint64 { return q.lastSeq }

// RaiseLastSeq makes the next job's number higher than seq.
func (q *jobTable) RaiseLastSeq(seq uint64) { q.lastSeq = max(q.lastSeq, seq) }

// JobFilter says which of the jobs in the queue are meant where no id is given.
type JobFilter struct {
	Owner          string // empty: anybody's
	States         []roost.TaskState
	WithFailedTask bool // jobs with a failed task
	Name           string
}

// MatchingJobs lists the jobs that a filter lets through, oldest first.
func (q *jobTable) MatchingJobs(f JobFilter) []roost.JobID {
	var out []roost.JobID
	for _, seq := range slices.Sorted(maps.Keys(q.jobs)) {
		if j := q.jobs[seq]; f.passes(j) {
			out = append(out, j.id(q.host))
		}
	}
	return out
}

func (f JobFilter) passes(j *job) bool {
	if f.Owner != "" && j.submission.owner != f.Owner || f.Name != "" && j.texts.name() != f.Name {
		return false
	}
	if len(f.States) == 0 && !f.WithFailedTask {
		return true
	}
	_, counts, failed := j.userCounts()
	return f.WithFailedTask && failed > 0 || slices.ContainsFunc(f.States, func(s roost.TaskState) bool {
		return counts[s] > 0
	})
}

// NewestJob returns the newest job of an owner.
func (q *jobTable) NewestJob(owner string) (roost.JobID, bool) {
	var last uint64
	for seq, j := range q.jobs {
		if j.submission.owner == owner && j.part == nil { // which its user has not submitted
			last = max(last, seq)
		}
	}
	return roost.JobID{Seq: last, Host: q.host}, last > 0
}

// SubmitSpec is a job as it would be submitted now.
func (q *jobTable) SubmitSpec(seq uint64) (jobad.SubmitSpec, bool) {
	j := q.jobs[seq]
	if j == nil {
		return jobad.SubmitSpec{}, false
	}
	return jobad.SubmitSpec{Ad: parsedAd(j), Count: len(j.state), Columns: j.submission.columns}, true
}

// AlteredSpec returns what a job would become by an event, and what of its ad changes. It
// is false for an event that alters no job.
func AlteredSpec(q *Queue, e eventlog.JobEvent) (after, changes jobad.SubmitSpec, ok bool) {
	if after, ok = q.SubmitSpec(e.Job); !ok || e.Submission == nil {
		return after, changes, false
	}
	ad, err := classad.Parse(e.Submission.Ad)
	if err != nil {
		return after, changes, false
	}
	before := after.Ad
	after.Ad, changes.Ad = before.Copy(), ad
	jobad.ApplyChanges(after.Ad, ad)
	changes.Ad.Delete(roost.AttrAlterations)
	if e.Submission.Count > 0 {
		after.Count, after.Columns = e.Submission.Count, e.Submission.Columns
	}
	return after, changes, true
}

// SubmitGID is the gid that a job was submitted with.
func (q *jobTable) SubmitGID(seq uint64) uint32 {
	if j := q.jobs[seq]; j != nil {
		return j.submission.gid
	}
	return 0
}

// JobAd returns a job's ad as text.
func (q *jobTable) JobAd(seq uint64) (string, bool) {
	j := q.jobs[seq]
	if j == nil {
		return "", false
	}
	return j.ad.String(), true
}

// PackedAd returns a job's ad in the form in which the queue has it.
func (q *jobTable) PackedAd(seq uint64) adtext.Packed {
	if j := q.jobs[seq]; j != nil {
		return j.ad
	}
	return adtext.Packed{}
}

// MatchesAd reports whether an expression is true of a job's ad, looked at without the
// attributes that are hidden.
func (q *jobTable) MatchesAd(seq uint64, e classad.Expr, env *classad.EvalEnv, hidden ...string) bool {
	j := q.jobs[seq]
	if j == nil {
		return false
	}
	ad := j.parsedAd
	if ad == nil {
		var err error
		if ad, err = classad.Parse(j.ad.String()); err != nil {
			return false
		}
	}
	if len(hidden) > 0 {
		ad = ad.Copy()
		for _, name := range hidden {
			ad.Delete(name)
		}
	}
	ok, isBool := classad.Eval(e, ad, nil, env).Truth()
	return ok && isBool
}

// IsRerunnable reports whether the tasks of a job may be run again after an attempt was
// interrupted.
func (q *jobTable) IsRerunnable(seq uint64) bool {
	j := q.jobs[seq]
	return j != nil && j.spec.Rerunnable
}

// SubmitKey returns the submit key of a job, with its owner's uid before it.
func (q *jobTable) SubmitKey(seq uint64) (string, bool) {
	j := q.jobs[seq]
	if j == nil {
		return "", false
	}
	return j.texts.key(), true
}

// JobChangeCounts counts what has happened to each of the jobs, so that one can see later
// whether something has.
func (q *jobTable) JobChangeCounts(seqs []uint64) map[uint64]int {
	out := make(map[uint64]int, len(seqs))
	for _, seq := range seqs {
		if j := q.jobs[seq]; j != nil {
			out[seq] = int(j.changes)
		}
	}
	return out
}

// TaskCount is how many tasks of a job the queue has. Of an array of gangs these are more
// than its user sees.
func (q *jobTable) TaskCount(seq uint64) int {
	if j := q.jobs[seq]; j != nil {
		return len(j.state)
	}
	return 0
}

func (q *jobTable) attemptOf(j *job, i int) roost.AttemptID {
	return roost.AttemptID{Task: j.id(q.host).Task(i), Attempt: j.records.Own(i).Attempt}
}

// liveRecord is the record of the attempt that an event is of, which must be live.
func (q *jobTable) liveRecord(j *job, e eventlog.JobEvent) *eventlog.TaskRecord {
	r := j.records.Own(e.Index)
	if r == nil || !r.Live || r.Attempt != e.Attempt {
		panic(fmt.Sprintf("queue: %v of attempt %d of %v, which is not live", e.Type, e.Attempt,
			j.id(q.host).Task(e.Index)))
	}
	return r
}

// AttemptAccount is what statistics need of the present attempt of a task. Times are unix
// nanoseconds.
type AttemptAccount struct {
	Request      RequestID // by which the task is asked for
	Band         roost.PriorityBand
	WaitingSince int64 // since when its job has waited for nothing but machines; 0: it does not
	Started      int64 // when its processes were seen to run; 0: they were not
	StoredWall   int64 // nanoseconds of the attempt that its newest checkpoint has
}

// AttemptAccount returns the account of a task's present attempt; false for a task that
// is not there.
func (q *jobTable) AttemptAccount(seq uint64, index int) (a AttemptAccount, ok bool) {
	j := q.jobs[seq]
	if j == nil || index < 0 || index >= len(j.state) {
		return a, false
	}
	a.Band, a.WaitingSince = j.spec.Band, j.eligible.WaitingSince
	a.Request = j.class(index).request.ID
	r := j.records.Own(index)
	if r == nil || !r.Live {
		return a, true
	}
	a.Started = r.Started
	if c := r.Checkpoints; c != nil && len(c.Images) > 0 {
		if last := &c.Images[len(c.Images)-1]; last.Attempt == r.Attempt {
			a.StoredWall = max(last.Wall-c.OriginUsage.Wall, 0)
		}
	}
	return a, true
}
