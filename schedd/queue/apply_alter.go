package queue

import (
	"fmt"
	"maps"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
	"github.com/roost-batch/roost/schedd/queue/update"
)

// applyAltered folds an alteration in.
func (q *Queue) applyAltered(j *job, e eventlog.JobEvent) {
	changes, err := classad.Parse(e.Submission.Ad)
	if err != nil {
		panic(fmt.Sprintf("queue: the alteration of job %d: %v", j.seq, err))
	}
	ad := parsedAd(j)
	jobad.ApplyChanges(ad, changes)
	p, name, err := q.specs.ReadText(ad.String())
	if err != nil {
		panic(fmt.Sprintf("queue: the altered ad of job %d: %v", j.seq, err))
	}
	q.removeDemand(j)
	_, stated := changes.Lookup(roost.AttrDependsOn)
	if stated {
		q.dependencies().withdrawDependencies(j)
	}
	q.clearDependencies(j)
	q.leaveRequests(j)
	limited := j.runsWhole() && (p.Walltime != j.spec.Walltime || p.ProcessLimits.CPU != j.spec.ProcessLimits.CPU)
	was, sub, together := j.ad.String(), j.submittedJob(), savesTogether(j)
	sub.Ad = ad.String()
	if stated {
		sub.Dependencies = e.Submission.Dependencies
	}
	n := e.Submission.Count
	ends := j.spec.Service != nil && p.Service != nil || j.spec.IsAlloc // it may run, and has fewer tasks
	if n > 0 && ends && len(sub.Columns)+len(e.Submission.Columns) == 0 {
		defer updateChanges{q}.changeTaskCount(j, e, n+serviceTasks{j}.surge())
		sub.Count = max(sub.Count, updateChanges{q}.growService(j, n+serviceTasks{j}.surge()))
	} else if n > 0 {
		sub.Count, sub.Columns = n, e.Submission.Columns
		q.resizeJob(j, n)
		j.ownExtras().indexes = jobad.IndexesOf(p.ArrayIndex, n/p.TasksPerIndex())
	}
	if len(e.Submission.Secret) > 0 {
		sub.Secret = e.Submission.Secret
	}
	if e.Submission.DeferredAdmission {
		q.deferredJobs[j.seq] = true
	}
	if p.Inside.Alloc != j.spec.Inside.Alloc { // it leaves its alloc set
		leaveAlloc(q.jobTable, j)
	}
	q.stateTotals.add(j, -1) // its band may be another
	j.submission, j.spec, j.texts = q.shareSubmission(sub), p, packTexts(sub, name)
	q.stateTotals.add(j, 1)
	j.ad = q.adTexts.Pack(sub.UID, sub.Ad)
	if j.parsedAd != nil {
		j.ownExtras().parsedAd = nil
	}
	q.reclassify(j, was)
	if stated {
		q.dependencies().applyOwnDependencies(j)
		q.dependencies().applyToOthers(j)
	}
	q.dependencies().updateDependencies(j, e)
	if j.schedule != nil || j.spec.Schedule != nil {
		q.removeSchedule(j)
		q.addSchedule(j)
		q.resumeSchedule(j, e.Time/1e9)
	}
	for i, s := range j.state {
		if limited && s.IsActive() {
			q.changedLimits = append(q.changedLimits, q.markLimits(j, i))
		}
	}
	q.addPolicy(j)
	taskResizes{q}.followAlteration(j, e.Time)
	q.gang().alterEpochs(j, together)
}

// resizeJob gives a fresh job another number of tasks.
func (q *Queue) resizeJob(j *job, n int) {
	s := j.state[0]
	maps.DeleteFunc(j.urgent, func(i int, _ *eventlog.RunOrder) bool { return i >= n })
	q.countOpen(j, n-len(j.state))
	q.changes++
	q.stateTotals.add(j, -1)
	j.counts[s] = int32(n)
	q.stateTotals.add(j, 1)
	j.state = slices.Repeat([]roost.TaskState{s}, n)
	j.records.Resize(n)
}

// oldAd is a job's ad as it was when tasks began that still run.
type oldAd struct {
	ad     string
	parsed *classad.Ad // once somebody has asked
}

// updateChanges is the queue as it changes by the updates of services.
type updateChanges struct{ *Queue }

// applyUpdate folds in what happens to a service that is updated.
func (q updateChanges) applyUpdate(j *job, e eventlog.JobEvent) {
	switch e.Type {
	case eventlog.Revised:
		q.applyRevised(j, e)
	case eventlog.UpdateChanged:
		q.applyUpdateChanged(j, e)
	default:
		q.applyReplaced(j, e)
	}
}

// applyRevised makes another revision of a job the one that its tasks are to run. Those
// that have run go on with theirs until they are replaced.
func (q updateChanges) applyRevised(j *job, e eventlog.JobEvent) {
	next := &eventlog.JobUpdate{Update: *e.Update}
	was := j.update
	if was != nil {
		next.Last, next.OldAd, next.Surge = was.Last, was.OldAd, was.Surge
	}
	if next.State != update.Undoing {
		if next.From == revisionsOf(j).revision() {
			next.OldAd = j.ad.String()
		}
		next.Last = next.To
	} else {
		for i := range j.state {
			if t := revisionsOf(j).taskRevision(i); t != nil {
				t.Untouched = max(t.Revision, firstRevision) == next.From
			}
		}
	}
	j.ownExtras().update = next
	q.applyAltered(j, e)
}

// applyUpdateChanged brings a job's update into another state.
func (q updateChanges) applyUpdateChanged(j *job, e eventlog.JobEvent) {
	if j.update == nil {
		panic(fmt.Sprintf("queue: job %d has no update", j.seq))
	}
	next := *j.update
	if next.Update = *e.Update; next.State == update.Closed {
		if next.OldAd = ""; next.Surge == 0 {
			delete(q.dueAt, j.seq)
		}
	}
	// What has failed is down for that, and for no planned cause. When it is ready again
	// it may be stopped like the others, and counts then.
	for _, i := range next.Failed {
		if t := revisionsOf(j).taskRevision(i); t != nil && !slices.Contains(j.update.Failed, i) {
			t.Planned = false
		}
	}
	j.ownExtras().update = &next
}

// replacedReason is why an attempt ends whose task gets another revision.
func replacedReason(j *job) string {
	return fmt.Sprintf("it is updated to revision %d", revisionsOf(j).revision())
}

// applyReplaced gives tasks the revision that the job has now. Whoever runs ends first.
func (q updateChanges) applyReplaced(j *job, e eventlog.JobEvent) {
	charged := false
	for _, span := range e.Ranges {
		for i := span.First; i <= span.Last; i++ {
			t := revisionsOf(j).taskRevision(i)
			charged = charged || e.Planned && t != nil && !t.Planned
			q.replaceTask(j, i, e)
		}
	}
	if charged {
		serviceTasks{j}.noteCharge(e.Time)
	}
}

func (q updateChanges) replaceTask(j *job, i int, e eventlog.JobEvent) {
	t := revisionsOf(j).taskRevision(i)
	if t == nil {
		return // it never had an attempt
	}
	t.Revision, t.Exits, t.Planned = revisionsOf(j).revision(), 0, t.Planned || e.Planned
	t.Untouched = false
	r := j.records.Own(i)
	switch {
	case r.Live:
		if !t.Stopping && !r.RemoveWanted && !r.RequeueWanted {
			t.Stopping = true
			q.vacates = append(q.vacates, VacateAttempt{Attempt: q.attemptOf(j, i), Reason: replacedReason(j)})
		}
	case j.state[i] == roost.Held && r.RequestedBy == "" && !j.distrust.AttemptMayLive: // its old revision was why
		r.HoldWanted, r.HoldReason, r.JobFailures, r.MachineFailures = false, "", 0, 0
		q.updateRestoreClass(j, i)
		q.setTaskState(j, i, roost.Idle)
	case !j.state[i].IsFinal():
		q.dropAllImages(j, i)
		q.updateRestoreClass(j, i)
		q.cancelWait(j, i, r)
	}
}

// cancelWait has a task begin anew whose revision is another. The claim of the last
// attempt may not have what that one asks for.
func (q updateChanges) cancelWait(j *job, i int, r *eventlog.TaskRecord) {
	s := r.Service
	s.ReuseClaim, s.NotBefore, s.EarlyEnds, s.Recent = false, 0, 0, nil
	if q.endWait(j, i); j.state[i] == roost.Blocked && !isTaskBlocked(q.jobTable, j, i) {
		q.setTaskState(j, i, roost.Idle)
	}
}
