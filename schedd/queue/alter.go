package queue

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// What a job asks for may be changed after it was submitted (POSIX, qalter), by anything
// that could have been submitted in its place. An alteration is all or nothing, and of
// the whole job. A job that runs keeps the machine that it has, so little of it can be
// changed then; of an array of which some tasks run, everything can, and these go on as
// they began.

// Errors for what PBS has a number for.
var (
	ErrRunning      = fmt.Errorf("%w: it cannot be changed while the job runs", roost.Conflict)
	ErrWholeJobOnly = fmt.Errorf("%w: that is done to a whole job, and not to some of its tasks", roost.Invalid)
	ErrRaiseLimit   = fmt.Errorf("%w: only an administrator may raise a limit of a job that runs",
		roost.PermissionDenied)
)

// JobAlteration is what is to become of a job.
type JobAlteration struct {
	Changes *classad.Ad // the new values; undefined takes an attribute away
	// how many tasks it is to have; 0: as many as it has. It can be another number while
	// none of them was ever begun
	Count   int
	Columns []jobad.TaskColumn // with Count: in the place of those that it has
	// how often it had been altered when this was thought out; below 0: whatever happened
	// meanwhile
	ExpectedVersion int64
	OnlyIdle        bool                          // it is refused if any task runs
	ApplyDefaults   func(*jobad.SubmitSpec) error // may fill in what is not said, and refuse the whole
}

// fixedAttrs are the attributes that say what a job is, and not what it asks for.
var fixedAttrs = []string{
	roost.AttrJobID, roost.AttrOwner, roost.AttrOwnerUID, roost.AttrOwnerGID, roost.AttrQDate, roost.AttrTaskCount,
	roost.AttrSubmitHost, roost.AttrAlterations,
	roost.AttrFileSystemDomain, roost.AttrArrayIndex, roost.AttrHoldOnSubmit, roost.AttrUnixGroup,
	roost.AttrCellQueue,
	roost.AttrAlloc, roost.AttrInAlloc, roost.AttrAllocPlace,
}

func isFixedAttr(name string) bool {
	return slices.ContainsFunc(fixedAttrs, func(f string) bool { return strings.EqualFold(f, name) })
}

// FixedAttr returns an attribute of some changes that says what a job is. It cannot be
// changed. Empty: there is none.
func FixedAttr(changes *classad.Ad) string {
	for _, name := range changes.Names() {
		if isFixedAttr(name) {
			return name
		}
	}
	return ""
}

// ApplyChanges puts changes into an ad; undefined takes an attribute away.
func ApplyChanges(ad, changes *classad.Ad) { jobad.ApplyChanges(ad, changes) }

// alterableAttrs are the attributes that can be changed while a job runs. They are what
// the next attempt begins with, and limits of this one (OpenPBS, master_job_attr_def.xml:
// ATR_DFLAG_ALTRUN).
var alterableAttrs = []string{
	roost.AttrPBS, roost.AttrSlurm, roost.AttrJobName, roost.AttrEnvironment, roost.AttrStartAfter, roost.AttrPriority,
	roost.AttrRerunnable, roost.AttrShell, roost.AttrWalltime, roost.AttrCPUTime,
	roost.AttrCheckpoint, roost.AttrCheckpointEvery, roost.AttrMaxRetries, roost.AttrMaxRunning, roost.AttrLabels,
	roost.AttrMailPoints, roost.AttrMailUsers, roost.AttrRunCount, roost.AttrAllocUsers,
}

// AlterJob decides to change a job. That it is so already is no error, and no event.
func (q taskDecisions) AlterJob(now time.Time, who CallerIdentity, t TaskSelector, a JobAlteration,
	limits SubmitLimits) ([]eventlog.JobEvent, error) {
	events, err := q.decideEach(now, who, t, eventlog.JobEvent{Type: eventlog.Altered}, (*job).remainsQueued)
	if err != nil {
		return nil, err
	}
	j := q.jobs[t.Job.Seq]
	if len(t.Ranges) > 0 {
		return nil, fmt.Errorf("%v: %w", t, ErrWholeJobOnly)
	}
	if a.ExpectedVersion >= 0 && a.ExpectedVersion != j.spec.Alterations {
		return nil, fmt.Errorf("%v: %w: somebody else has altered it meanwhile", t, roost.Stale)
	}
	if a.OnlyIdle && j.active > 0 {
		return nil, fmt.Errorf("%v: %w: it runs", t, roost.Conflict)
	}
	leaves := leavesAlloc(j, a.Changes)
	if leaves && j.active > 0 {
		return nil, fmt.Errorf("%v: %w inside its alloc: hold it first (roost hold %d), take it out (roost alloc "+
			"leave %d), and release it (roost release %d)", t, ErrRunning, j.seq, j.seq, j.seq)
	}
	for _, name := range a.Changes.Names() {
		if leaves && name == roost.AttrInAlloc {
			continue
		}
		if isFixedAttr(name) {
			return nil, fmt.Errorf("attribute %s: %w: it says what the job is, and cannot be changed", name,
				roost.Invalid)
		}
	}
	before := jobad.SubmitSpec{Ad: parsedAd(j), Count: taskCount(j), Columns: j.submission.columns}
	after := jobad.SubmitSpec{Ad: before.Ad.Copy(), Count: cmp.Or(a.Count, before.Count), Columns: before.Columns}
	jobad.ApplyChanges(after.Ad, a.Changes)
	if leaves {
		after.Ad.Delete(roost.AttrAllocPlace)
	}
	if a.Count > 0 {
		after.Columns = a.Columns
		if _, ok := after.Ad.Lookup(jobad.AttrArray); !ok && a.Count > 1 {
			after.Ad.SetBool(jobad.AttrArray, true)
		}
	}
	if a.ApplyDefaults != nil {
		if err := a.ApplyDefaults(&after); err != nil {
			return nil, err
		}
	}
	changes := jobad.Difference(before.Ad, after.Ad)
	if changes.Len() == 0 && after.Count == before.Count {
		return nil, nil
	}
	after.Ad.SetInt(roost.AttrTaskCount, int64(after.Count))
	after.Ad.SetInt(roost.AttrAlterations, j.spec.Alterations+1)
	sub, err := q.checkAlteration(j, who, &before, &after, changes, limits)
	if err != nil {
		return nil, err
	}
	events[0].Submission, events[0].Reason = sub, jobad.DescribeChanges(changes)
	return events, nil
}

// remainsQueued reports whether a task has not ended and nobody wants it removed.
func (j *job) remainsQueued(i int) bool {
	return !j.state[i].IsFinal() && (!j.state[i].IsActive() || !j.records.Own(i).RemoveWanted)
}

// runsWhole reports whether a job runs as a whole, which an array does not.
func (j *job) runsWhole() bool { return j.active > 0 && (!j.spec.Array || j.gangs.size > 0) }

// checkAlteration checks what a job would become, and returns what the event has to say
// of it.
func (q taskDecisions) checkAlteration(j *job, who CallerIdentity, before, after *jobad.SubmitSpec, changes *classad.Ad,
	limits SubmitLimits) (*eventlog.SubmittedJob, error) {
	if err := j.checkAlterable(who, before, after, changes); err != nil {
		return nil, err
	}
	return q.checkChanged(j, who, before, after, changes, limits)
}

// checkChanged checks an ad that a job may have, and returns what the event has to say of
// it.
func (q taskDecisions) checkChanged(j *job, who CallerIdentity, before, after *jobad.SubmitSpec, changes *classad.Ad,
	limits SubmitLimits) (*eventlog.SubmittedJob, error) {
	p, err := jobad.ReadSpec(after.Ad)
	if err != nil {
		return nil, err
	}
	if err := jobad.CheckColumns(after.Columns, after.Count); err != nil {
		return nil, err
	}
	if err := jobad.CheckOverrides(p, after.Columns); err != nil {
		return nil, err
	}
	if err := jobad.CheckGang(&p, after); err != nil {
		return nil, err
	}
	if err := q.checkAllocAfter(j, &p, after); err != nil {
		return nil, err
	}
	sub := &eventlog.SubmittedJob{}
	if _, stated := changes.Lookup(roost.AttrDependsOn); stated {
		others := &dependencyResolver{jobTable: q.jobTable, caller: who, jobNumber: j.seq, limits: limits,
			fromQsub: p.FromQsub, isArray: p.Array}
		if sub.Dependencies, err = others.resolveAll(after.Ad); err != nil {
			return nil, err
		}
	}
	if size := len(after.Ad.String()); size > roost.MaxAdBytes {
		return nil, fmt.Errorf("%w: the job's ad would have %d bytes, and %d is the most", roost.Exhausted, size,
			roost.MaxAdBytes)
	}
	if p.Checkpoints != nil && len(j.texts.secret()) == 0 && limits.NewSecret != nil {
		sub.Secret = limits.NewSecret()
	}
	if after.Count != before.Count {
		if err := jobad.CheckIndexes(after.Ad, after.Count/p.TasksPerIndex()); err != nil {
			return nil, err
		}
		sub.Count, sub.Columns = after.Count, after.Columns
	}
	sub.DeferredAdmission = needsMoreQuota(CallerIdentity{User: j.submission.owner, GID: j.submission.gid},
		before, after)
	sub.Ad = jobad.Difference(before.Ad, after.Ad).String()
	return sub, nil
}

// maxDifferentTasks bounds how many classes a job may have with those of tasks that go on
// as they began.
const maxDifferentTasks = 50_000

// checkAlterable refuses what cannot be changed as the job stands.
func (j *job) checkAlterable(who CallerIdentity, before, after *jobad.SubmitSpec, changes *classad.Ad) error {
	for _, name := range changes.Names() {
		if jobad.IsOverridable(name) && slices.ContainsFunc(after.Columns, func(c jobad.TaskColumn) bool {
			return c.Name == name
		}) {
			return fmt.Errorf("attribute %s: %w: each task has its own, in a column", name, roost.Conflict)
		}
		size := name == roost.AttrRequestCpus || name == roost.AttrRequestMemory
		if j.runsWhole() && !slices.Contains(alterableAttrs, name) && !(size && resizesInPlace(j)) {
			return fmt.Errorf("attribute %s: %w", name, ErrRunning)
		}
		if size && isResizing(j) {
			return fmt.Errorf("attribute %s: %w: a machine has not answered yet about the size asked for before; try "+
				"again", name, roost.Conflict)
		}
	}
	for _, name := range []string{roost.AttrWalltime, roost.AttrCPUTime} {
		was, _ := before.Ad.Int(name)
		if is, _ := after.Ad.Int(name); j.runsWhole() && !who.Admin && was > 0 && (is == 0 || is > was) {
			return fmt.Errorf("attribute %s: %w", name, ErrRaiseLimit)
		}
	}
	switch {
	case after.Count < 1 || after.Count > roost.MaxTasks:
		return fmt.Errorf("%w: %d tasks, and 1 to %d are possible", roost.Exhausted, after.Count, roost.MaxTasks)
	case after.Count != before.Count && numberCount(&j.spec.JobSpec, before.Count) > 1:
		return fmt.Errorf("%w: its tasks have the numbers behind its own, and the next ones are other jobs'; submit "+
			"another array", roost.Conflict)
	case after.Count != before.Count && !j.isUntouched():
		return fmt.Errorf("%w: it has begun, and cannot have another number of tasks", ErrRunning)
	case len(j.classes) > maxDifferentTasks:
		return fmt.Errorf("%w: its tasks differ too much in what they began with; wait until some have ended",
			roost.Exhausted)
	}
	return nil
}

// isUntouched reports whether no task of a job was ever begun, and all are in one state.
// They are as at submit, or were held or released together.
func (j *job) isUntouched() bool {
	for _, s := range j.state {
		if s != j.state[0] {
			return false
		}
	}
	return !j.state[0].IsFinal() && j.records.IsUniform()
}

// needsMoreQuota reports whether a job would be held against another quota than before,
// or ask for more.
func needsMoreQuota(who CallerIdentity, before, after *jobad.SubmitSpec) bool {
	was, had, err := SubmissionDemand(who, before)
	is, wants, err2 := SubmissionDemand(who, after)
	if err != nil || err2 != nil || was != is {
		return true
	}
	more := wants.Sub(had)
	return more.CPU > 0 || more.Memory > 0 || more.Disk > 0 || more.GPUs > 0 || more.GPUMemory > 0 || more.Tasks > 0 ||
		more.Open > 0
}

// AlterationDemand returns whose quota a job is held against after an alteration, and how
// much more it needs than now.
func (q *quotaDemands) AlterationDemand(e eventlog.JobEvent) (QuotaKey, QuotaDemand) {
	j := q.jobs[e.Job]
	who := CallerIdentity{User: j.submission.owner, GID: j.submission.gid}
	before := jobad.SubmitSpec{Ad: parsedAd(j), Count: taskCount(j), Columns: j.submission.columns}
	after := jobad.SubmitSpec{Ad: before.Ad.Copy(), Count: before.Count, Columns: before.Columns}
	changes, err := classad.Parse(e.Submission.Ad)
	if err != nil {
		panic(fmt.Sprintf("queue: the alteration of job %d: %v", j.seq, err)) // it was decided here
	}
	if jobad.ApplyChanges(after.Ad, changes); e.Submission.Count > 0 {
		after.Count, after.Columns = e.Submission.Count, e.Submission.Columns
	}
	was, had, _ := SubmissionDemand(who, &before)
	is, wants, _ := SubmissionDemand(who, &after)
	if was != is || q.deferredJobs[j.seq] { // what it has counts for another, or for nobody
		return is, wants
	}
	more := wants.Sub(had)
	more.CPU, more.Memory, more.Disk, more.GPUs = max(more.CPU, 0), max(more.Memory, 0), max(more.Disk, 0),
		max(more.GPUs, 0)
	more.IO = more.IO.Max(roost.IORates{})
	more.GPUMemory, more.Tasks, more.Open = max(more.GPUMemory, 0), max(more.Tasks, 0), max(more.Open, 0)
	return is, more
}

// parsedAd is a job's ad.
func parsedAd(j *job) *classad.Ad {
	ad, err := classad.Parse(j.ad.String())
	if err != nil {
		panic(fmt.Sprintf("queue: the ad of job %d: %v", j.seq, err)) // it was taken as it is
	}
	return ad
}
