package queue

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/mutant"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
	"github.com/roost-batch/roost/schedd/queue/update"
)

// A service has revisions, counted from 1. Each task is of one, also while it waits, and
// gets another when the update of its job replaces it. The queue has the ads of two, the
// newest and the one to which an update can be undone; tasks of others between them have
// theirs in their classes.

// jobRevisions is a job as something that has revisions.
type jobRevisions struct{ *job }

func revisionsOf(j *job) jobRevisions { return jobRevisions{j} }

// firstRevision is the number of what was submitted.
const firstRevision = 1

// revision is the number of what the job is to run now.
func (j jobRevisions) revision() uint32 {
	if j.update == nil {
		return firstRevision
	}
	return j.update.Target()
}

// taskRevision returns what updates know of a task; nil while it had no attempt.
func (j jobRevisions) taskRevision(i int) *eventlog.TaskRevision {
	if r := j.records.Own(i); r != nil && r.Service != nil {
		return &r.Service.Updated
	}
	return nil
}

// isStopping reports whether the live attempt of a task ends for another revision.
func (j jobRevisions) isStopping(i int) bool {
	t := j.taskRevision(i)
	return t != nil && t.Stopping
}

// retainsRevision reports whether a task goes on with another revision than its job has
// now. It does so when it is started again, too.
func (j jobRevisions) retainsRevision(i int) bool {
	if j.update == nil {
		return false
	}
	t := j.taskRevision(i)
	return t != nil && max(t.Revision, firstRevision) != j.revision()
}

// taskFact is what an update needs to know of a task.
func (j jobRevisions) taskFact(i int) update.TaskFact {
	f := update.TaskFact{Revision: j.revision(), Since: j.submitted, Absent: j.state[i].IsFinal()}
	r := j.records.Get(i)
	if r == nil {
		return f
	}
	f.Absent = f.Absent || r.RemoveWanted || r.HoldWanted && r.RequestedBy != ""
	if r.Service == nil {
		return f
	}
	t := &r.Service.Updated
	f.Revision, f.Planned, f.WasReady, f.Exits = max(t.Revision, firstRevision), t.Planned, t.WasReady, t.Exits
	f.Untouched = t.Untouched
	if t.Since != 0 {
		f.Since = t.Since
	}
	if r.Live {
		f.Began, f.Condition = r.Assigned, r.Condition()
		j.addResizeFacts(i, r, &f)
	}
	return f
}

// serviceUpdates knows which updates are to be looked at, and when.
type serviceUpdates struct {
	*jobTable
	dueAt   map[uint64]int64 // by job: unix nanoseconds; in the past: something has changed
	askedAt int64            // when the updates were last looked at, unix nanoseconds
	// whether nobody has said yet that quotas allow a job
	awaitsQuota func(job uint64) bool
}

func newServiceUpdates(jobs *jobTable, quotas *quotaDemands) *serviceUpdates {
	return &serviceUpdates{jobTable: jobs, dueAt: map[uint64]int64{},
		awaitsQuota: func(job uint64) bool { return quotas.deferredJobs[job] }}
}

// markUpdate has a job's update looked at again.
func (q *serviceUpdates) markUpdate(j *job) {
	if j.update != nil && (j.update.State != update.Closed || j.update.Surge > 0) || resizesInPlace(j) {
		q.dueAt[j.seq] = 0
	}
}

// nextUpdate is when the next update is to be looked at; zero: none is.
func (q *serviceUpdates) nextUpdate() (at time.Time) {
	for _, due := range q.dueAt {
		if t := time.Unix(0, due); at.IsZero() || t.Before(at) {
			at = t
		}
	}
	return at
}

// decideUpdates decides how the updates go on. Asking twice is harmless.
func (q *serviceUpdates) decideUpdates(now time.Time) (events []eventlog.JobEvent) {
	setBack := now.UnixNano() < q.askedAt // the clock was: what is due has to be worked out again
	q.askedAt = now.UnixNano()
	for _, seq := range slices.Sorted(maps.Keys(q.dueAt)) {
		if q.dueAt[seq] > now.UnixNano() && !setBack {
			continue
		}
		j := q.jobs[seq]
		if j == nil || j.update == nil && !resizesInPlace(j) || j.isFinal() {
			delete(q.dueAt, seq)
			continue
		}
		decided, again := q.decideResizes(now, j)
		if j.update != nil {
			decided, again = q.decideUpdate(now, j)
		}
		events = append(events, decided...)
		if mutant.Active(mutant.SettlingMissed) {
			again = 0
		}
		if q.dueAt[seq] = again; again == 0 {
			delete(q.dueAt, seq)
		}
	}
	return events
}

// decideUpdate decides how the update of a job goes on, and when to ask again.
func (q *serviceUpdates) decideUpdate(now time.Time, j *job) (events []eventlog.JobEvent, again int64) {
	count, surge := serviceTasks{j}.wanted(), serviceTasks{j}.surge()
	plan := serviceTasks{j}.tally().Decide(j.update.Update, j.spec.Update, count, serviceTasks{j}.toRun(), now)
	want := min(plan.Surge, roost.MaxTasks-count)
	if len(j.submission.columns) > 0 { // which say nothing of other tasks
		want = 0
	}
	if want > surge && !(serviceTasks{j}).runsAny() {
		want = surge
	}
	if want != surge {
		events = append(events, eventlog.JobEvent{Type: eventlog.SurgeChanged, Time: now.UnixNano(), Job: j.seq,
			Submission: &eventlog.SubmittedJob{Count: count + want}})
		plan.Again = now.UnixNano()
	}
	if plan.Changed {
		events = append(events, updateEvent(now, j, plan.Update))
	}
	replaced, resized := map[bool][]eventlog.IndexRange{}, []eventlog.IndexRange(nil)
	slices.SortFunc(plan.Replace, func(a, b update.Replacement) int { return a.Index - b.Index })
	for _, r := range plan.Replace {
		if r.Resize {
			resized = appendIndex(resized, r.Index)
			continue
		}
		replaced[r.Planned] = appendIndex(replaced[r.Planned], r.Index)
	}
	for _, planned := range []bool{false, true} {
		if ranges := replaced[planned]; len(ranges) > 0 {
			events = append(events, eventlog.JobEvent{Type: eventlog.Replaced, Time: now.UnixNano(), Job: j.seq,
				Ranges: ranges, Planned: planned})
		}
	}
	if len(resized) > 0 && q.awaitsQuota(j.seq) {
		return events, now.Add(quotaRetry).UnixNano()
	}
	if len(resized) > 0 {
		events = append(events, eventlog.JobEvent{Type: eventlog.ResizeRequested, Time: now.UnixNano(), Job: j.seq,
			Ranges: resized, Reason: fmt.Sprintf("the size of revision %d", revisionsOf(j).revision())})
	}
	return events, plan.Again
}

// updateEvent is the event by which the update of a job becomes another. Where its tasks
// go back, the job's ad becomes what it was.
func updateEvent(now time.Time, j *job, to update.Update) eventlog.JobEvent {
	e := eventlog.JobEvent{Type: eventlog.UpdateChanged, Time: now.UnixNano(), Job: j.seq, Update: &to,
		Reason: to.Reason}
	if to.Target() == revisionsOf(j).revision() || to.State != update.Undoing {
		return e
	}
	before, err := classad.Parse(j.update.OldAd)
	if err != nil {
		panic(err) // it was the job's own
	}
	if mutant.Active(mutant.SizeNotUndone) {
		for _, name := range []string{roost.AttrRequestCpus, roost.AttrRequestMemory} {
			if has, ok := parsedAd(j).Lookup(name); ok {
				before.Insert(name, has)
			}
		}
	}
	e.Type = eventlog.Revised
	if n, ok := before.Int(roost.AttrTaskCount); ok && j.spec.Service.Autoscale != nil {
		before.SetInt(roost.AttrTaskCount, int64(retainedCount(taskCount(j), before, int(n))))
	}
	e.Submission = &eventlog.SubmittedJob{Ad: jobad.Difference(parsedAd(j), before).String()}
	if n, _ := before.Int(roost.AttrTaskCount); int(n) != taskCount(j) {
		e.Submission.Count = int(n)
	}
	return e
}

// Followups decides what follows from what has happened and from the time: for jobs that
// wait, and for updates. Asking twice is harmless.
func (q *Queue) Followups(now time.Time) []eventlog.JobEvent {
	events := append(q.dependencyIndex.Followups(now), q.decideUpdates(now)...)
	return append(events, q.gang().commitEpochs(now)...)
}

// NextDue is when Followups has something to decide without anything happening; zero:
// never.
func (q *Queue) NextDue() time.Time {
	at, next := q.dependencyIndex.NextDue(), q.nextUpdate()
	if at.IsZero() || !next.IsZero() && next.Before(at) {
		return next
	}
	return at
}

// JobRevision is a new revision of a service.
type JobRevision struct {
	Ad            *classad.Ad // of the job file; nil: as it is, every task is started again
	Count         int
	Columns       []jobad.TaskColumn
	CountOnly     bool // Count is all that it is about
	PlanOnly      bool // only say what would be done
	SizeOnly      bool // Ad differs from the job's in its size, which follows its use
	ApplyDefaults func(spec *jobad.SubmitSpec, changes *classad.Ad) error
}

// RevisionPlan is what a new revision does.
type RevisionPlan struct {
	Changes  []jobad.AttributeEffect
	Effect   jobad.RevisionEffect
	Revision uint32 // the number that the job has then
	Before   uint32 // the number that it has now
	// how many tasks it has, and is to have
	CountBefore, Count int
	NewContent         []string // digests of images and packages that the revision before did not have
}

// ReviseJob decides that a service becomes another revision of itself. A change that no
// attempt depends on is made in place. That it is so already is no error, and no event.
func (q taskDecisions) ReviseJob(now time.Time, who CallerIdentity, t TaskSelector, rev JobRevision,
	limits SubmitLimits) (events []eventlog.JobEvent, plan RevisionPlan, err error) {
	j, err := q.revisableJob(now, who, t)
	if err != nil {
		return nil, plan, err
	}
	before := jobad.SubmitSpec{Ad: parsedAd(j), Count: taskCount(j), Columns: j.submission.columns}
	after := jobad.SubmitSpec{Ad: before.Ad.Copy(), Count: before.Count, Columns: before.Columns}
	plan.CountBefore, plan.Count = before.Count, before.Count
	if rev.CountOnly {
		rev.Ad, rev.Columns = before.Ad.Copy(), before.Columns
		if err := checkCountOnly(j, rev.Count); err != nil {
			return nil, plan, fmt.Errorf("%v: %w", t, err)
		}
	}
	if rev.Ad != nil {
		after.Ad = jobad.NewRevisionAd(before.Ad, rev.Ad, fixedAttrs)
		if !rev.CountOnly {
			rev.Count = retainedCount(before.Count, after.Ad, rev.Count)
		}
		if !rev.SizeOnly {
			retainSize(j, after.Ad)
		}
		if err := changeCount(j, &after, rev); err != nil {
			return nil, plan, fmt.Errorf("%v: %w", t, err)
		}
		plan.Count = after.Count
		if !reflect.DeepEqual(append([]jobad.TaskColumn{}, rev.Columns...),
			append([]jobad.TaskColumn{}, before.Columns...)) {
			return nil, plan, fmt.Errorf("%v: %w: for_each gives its tasks other values than before, which an update "+
				"cannot change; submit another job", t, roost.Conflict)
		}
	}
	changes := jobad.Difference(before.Ad, after.Ad)
	if rev.ApplyDefaults != nil && changes.Len() > 0 {
		if err := rev.ApplyDefaults(&after, changes); err != nil {
			return nil, plan, err
		}
	}
	plan.Revision, plan.Before = revisionsOf(j).revision(), revisionsOf(j).revision()
	if plan.Changes, plan.Effect = jobad.RevisionChanges(before.Ad, after.Ad, fixedAttrs); rev.Ad == nil {
		plan.Effect = jobad.RestartTask
	}
	for _, c := range plan.Changes {
		if c.Effect == jobad.Refused {
			return nil, plan, fmt.Errorf("%v: %w: attribute %s cannot change: it would be another job", t,
				roost.Conflict, c.Name)
		}
	}
	if j.spec.IsAlloc {
		err = allocRevision(j, &plan)
	} else if plan.Effect >= jobad.ResizeTask {
		plan.Revision = revisionsOf(j).lastRevision() + 1
	}
	if err != nil {
		return nil, plan, fmt.Errorf("%v: %w", t, err)
	}
	if plan.Effect == jobad.NoEffect {
		return nil, plan, nil
	}
	e, err := q.revisionEvent(now, who, j, &before, &after, plan, limits)
	if err != nil || rev.PlanOnly {
		return nil, plan, err
	}
	if e.Update != nil {
		e.Update.Restart = rev.Ad == nil
	}
	plan.NewContent = newContent(before.Ad, after.Ad)
	return []eventlog.JobEvent{e}, plan, nil
}

// newContent lists what a revision has of images and packages that the one before did not
// have.
func newContent(before, after *classad.Ad) (list []string) {
	old, oldErr := jobad.ReadSpec(before)
	p, err := jobad.ReadSpec(after)
	if err != nil || oldErr != nil {
		return nil
	}
	had := old.ContentDigests()
	return slices.DeleteFunc(p.ContentDigests(), func(digest string) bool { return slices.Contains(had, digest) })
}

// changeCount gives a revision another number of tasks.
func changeCount(j *job, after *jobad.SubmitSpec, rev JobRevision) error {
	switch {
	case rev.Count == after.Count:
		return nil
	case rev.Count < 1 || rev.Count > roost.MaxTasks:
		return fmt.Errorf("%w: %d tasks, and 1 to %d are possible", roost.Exhausted, rev.Count, roost.MaxTasks)
	case len(j.submission.columns) > 0 || j.spec.ArrayIndex != "":
		return fmt.Errorf("%w: it has %d tasks, and %d are wanted: the tasks of for_each are what they are; submit "+
			"another job", roost.Conflict, after.Count, rev.Count)
	}
	after.Count = rev.Count
	after.Ad.SetInt(roost.AttrTaskCount, int64(rev.Count))
	if _, ok := after.Ad.Lookup(jobad.AttrArray); !ok {
		after.Ad.SetBool(jobad.AttrArray, true)
	}
	return nil
}

// revisableJob returns a job that may be updated by a caller.
func (q taskDecisions) revisableJob(now time.Time, who CallerIdentity, t TaskSelector) (*job, error) {
	if _, err := q.decideEach(now, who, t, eventlog.JobEvent{Type: eventlog.Revised},
		(*job).remainsQueued); err != nil {
		return nil, err
	}
	j := q.jobs[t.Job.Seq]
	switch {
	case len(t.Ranges) > 0:
		return nil, fmt.Errorf("%v: %w", t, ErrWholeJobOnly)
	case j.spec.Service == nil && !j.spec.IsAlloc:
		return nil, fmt.Errorf("%v: %w: only a service or an alloc set is updated, and this job has no service block",
			t, roost.Conflict)
	case isResizing(j) && j.spec.IsAlloc:
		return nil, fmt.Errorf("%v: %w: a machine has not answered yet about the size asked for before; try again", t,
			roost.Conflict)
	}
	return j, nil
}

// lastRevision is the highest number that a revision of a job has had.
func (j jobRevisions) lastRevision() uint32 {
	if j.update == nil {
		return firstRevision
	}
	return j.update.Last
}

// revisionEvent checks what a service would become, and returns the event for that.
func (q taskDecisions) revisionEvent(now time.Time, who CallerIdentity, j *job, before, after *jobad.SubmitSpec,
	plan RevisionPlan, limits SubmitLimits) (e eventlog.JobEvent, err error) {
	changes := jobad.Difference(before.Ad, after.Ad)
	after.Ad.SetInt(roost.AttrAlterations, j.spec.Alterations+1)
	if _, err := jobad.ReadSpec(after.Ad); err != nil {
		return e, err
	}
	e = eventlog.JobEvent{Type: eventlog.Altered, Time: now.UnixNano(), Job: j.seq,
		RequestedBy: who.requester(j.submission.owner, j.submission.uid), Reason: jobad.DescribeChanges(changes)}
	if e.Submission, err = q.checkChanged(j, who, before, after, changes, limits); err != nil {
		return e, err
	}
	if plan.Effect < jobad.ResizeTask || j.spec.IsAlloc {
		return e, nil
	}
	p, err := jobad.ReadSpec(after.Ad)
	if err != nil {
		return e, err
	}
	if p.Service == nil {
		return e, fmt.Errorf("%w: without its service block it would be another job", roost.Conflict)
	}
	started := update.Update{}
	if j.update != nil {
		started = j.update.Update
	}
	u := update.Begin(started, revisionsOf(j).revision(), plan.Revision, p.Update, now.UnixNano())
	if plan.Effect <= jobad.MatchTask {
		u.Alike = started.AlikeAfter(revisionsOf(j).revision())
	}
	if e.Type, e.Update = eventlog.Revised, &u; e.Reason == "" {
		e.Reason = "every task is started again"
	}
	return e, nil
}

// CommandUpdate decides what a user wants of the update of a service.
func (q taskDecisions) CommandUpdate(now time.Time, who CallerIdentity, t TaskSelector,
	c update.Command) ([]eventlog.JobEvent, error) {
	j, err := q.revisableJob(now, who, t)
	if err != nil {
		return nil, err
	}
	if j.update == nil {
		return nil, fmt.Errorf("%v: %w: it was never updated", t, roost.Conflict)
	}
	mixed := false
	for i := range j.state {
		mixed = mixed || !j.state[i].IsFinal() && revisionsOf(j).retainsRevision(i)
	}
	to, err := j.update.After(c, mixed, now.UnixNano())
	if err != nil {
		return nil, fmt.Errorf("%v: %w", t, err)
	}
	if reflect.DeepEqual(to, j.update.Update) {
		return nil, nil
	}
	e := updateEvent(now, j, to)
	if e.RequestedBy = who.requester(j.submission.owner, j.submission.uid); e.Reason == "" {
		e.Reason = c.String()
	}
	return []eventlog.JobEvent{e}, nil
}

// UpdateStatus is what is told of the update of a service.
type UpdateStatus struct {
	update.Update
	Tasks  map[update.TaskState]int
	Budget update.Budget
	// PromotesAt is when its canaries are accepted by themselves, unix nanoseconds; 0:
	// never
	PromotesAt int64
}

// WasUpdated reports whether a job in the queue was ever updated.
func (q *jobTable) WasUpdated(seq uint64) bool {
	j := q.jobs[seq]
	return j != nil && j.update != nil
}

// UpdateStatus tells how the update of a job goes; false for one that was never updated.
func (q *jobTable) UpdateStatus(seq uint64, now time.Time) (s UpdateStatus, ok bool) {
	j := q.jobs[seq]
	if j == nil || j.update == nil {
		return s, false
	}
	t := serviceTasks{j}
	s = UpdateStatus{Update: j.update.Update, Budget: t.budget(now.UnixNano()),
		Tasks: t.tally().States(t.lastUpdate(), j.spec.Update, t.wanted(), t.toRun(), now.UnixNano())}
	if after := j.spec.Update.PromoteAfter; after > 0 && s.State == update.WaitingPromote {
		s.PromotesAt = s.Moved + int64(after)
	}
	return s, true
}
