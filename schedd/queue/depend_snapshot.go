package queue

import (
	"slices"

	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// How a job stands to others goes to disk with the job: what it said itself is in its
// submission, and the rest here.

// savedWaits is how the job stands to others, beyond what it said itself when it was
// submitted.
func (j *job) savedWaits() eventlog.JobWaits {
	w := eventlog.JobWaits{ExpectedBefore: j.expectedBefore, ExpectedSync: j.expectedSync, RunOneSet: j.runOneSet,
		RunOneStarted: j.runOneStarted, RemovedUnstarted: j.removedUnstarted,
		StartTimeReached: j.startTimeReached && j.isBlocked() && j.spec.StartAfter > 0}
	for _, d := range j.dependencies {
		if !slices.Contains(j.submission.dependencies, d) {
			w.Added = append(w.Added, d)
		}
	}
	return w
}

// restoreDependencies brings a restored job to how it stood to others.
func (q dependencyChanges) restoreDependencies(j *job, r *eventlog.JobWaits, free bool) {
	if !free {
		j.ownExtras()
		j.expectedBefore, j.expectedSync, j.runOneStarted = r.ExpectedBefore, r.ExpectedSync, r.RunOneStarted
		j.dependencies = append(slices.Clip(j.dependencies), r.Added...)
	}
	if r.StartTimeReached {
		j.ownExtras().startTimeReached = true
		delete(q.startTimes, j.seq)
	}
	if len(r.RunOneSet) > 0 || r.RemovedUnstarted {
		j.ownExtras()
		j.runOneSet, j.removedUnstarted = r.RunOneSet, r.RemovedUnstarted
	}
	for _, w := range r.Added {
		q.addDependent(j, w.Job)
	}
	for _, other := range j.runOneSet {
		q.addDependent(j, other)
	}
}
