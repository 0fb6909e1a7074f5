package queue

import (
	"fmt"
	"maps"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
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
	was, sub := j.ad.String(), j.submittedJob()
	sub.Ad = ad.String()
	if stated {
		sub.Dependencies = e.Submission.Dependencies
	}
	if n := e.Submission.Count; n > 0 {
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
