package queue

import (
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/mutant"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// What becomes of one job has consequences for those that stand to it: they are
// unblocked, or dropped. Those are decided here (Followups) as if somebody asked for
// them, so that the log tells them. That of rivals only one runs cannot wait for a
// decision: it is folded in with the very event by which one of them starts.

// dependencyChanges folds in what the events of one job change for the others.
type dependencyChanges struct{ *Queue }

func (q *Queue) dependencies() dependencyChanges { return dependencyChanges{q} }

// applyOwnDependencies takes in what a new job says of others, as far as it is a matter
// of its own.
func (q dependencyChanges) applyOwnDependencies(j *job) {
	for _, w := range j.submission.dependencies {
		switch {
		case w.Type == eventlog.OnCount:
			j.ownExtras().expectedBefore += w.Count
		case w.Type == eventlog.SyncCount:
			j.ownExtras().expectedSync += w.Count
		case w.Type.Blocks():
			j.ownExtras().dependencies = append(j.dependencies, w)
			q.addDependent(j, w.Job)
			if w.Count != 0 || w.Type == eventlog.AfterReady || w.Type == eventlog.AfterCorr {
				q.countedDependents[w.Job] = true
			}
		}
	}
}

// applyToOthers takes in what a new job says of others, as far as it changes them. It is
// for a job that is submitted, and not for one that is restored: the others have been
// told, then.
func (q dependencyChanges) applyToOthers(j *job) {
	counted := map[uint64]bool{}
	for _, w := range j.submission.dependencies {
		other := q.jobs[w.Job]
		if other == nil || other.isFinal() {
			continue
		}
		switch mirror := w.Type.MirroredType(); {
		case mirror != 0:
			if !counted[w.Job] {
				counted[w.Job] = true
				other.ownExtras().expectedBefore = max(other.expectedBefore-1, 0)
			}
			other.ownExtras().dependencies = append(slices.Clone(other.dependencies),
				eventlog.JobDependency{Type: mirror, Job: j.seq, Count: 0})
			q.addDependent(other, j.seq)
		case w.Type == eventlog.SyncWith:
			other.ownExtras().expectedSync = max(other.expectedSync-1, 0)
			q.markToResolve(other)
		case w.Type == eventlog.RunOne:
			q.linkRunOne(j, other)
		default:
			continue
		}
		q.updateBlocked(other)
		q.markChanged(other)
	}
	q.updateBlocked(j)
}

// withdrawDependencies takes back all that a job said of others, and they of it (OpenPBS,
// alter_unreg).
func (q dependencyChanges) withdrawDependencies(j *job) {
	for _, w := range j.submission.dependencies {
		if other, mirror := q.jobs[w.Job], w.Type.MirroredType(); other != nil && mirror != 0 && !other.isFinal() {
			other.ownExtras().dependencies = slices.DeleteFunc(slices.Clone(other.dependencies),
				func(o eventlog.JobDependency) bool {
					return o == eventlog.JobDependency{Type: mirror, Job: j.seq, Count: 0}
				})
			q.removeDependent(other, j.seq)
			q.toResolve[other.seq] = true
			q.updateBlocked(other)
			q.markChanged(other)
		}
	}
	q.unlinkRunOne(j)
	q.clearDependencies(j)
	if x := j.jobExtras; !x.shared {
		x.dependencies, x.expectedBefore, x.expectedSync, x.runOneStarted = nil, 0, 0, false
	}
}

// unlinkRunOne makes a job nobody's rival any more.
func (q dependencyChanges) unlinkRunOne(j *job) {
	others := j.runOneSet
	if !j.shared {
		j.runOneSet, j.runOneStarted = nil, false
	}
	for _, seq := range others {
		q.removeDependent(j, seq)
		if o := q.jobs[seq]; o != nil {
			o.ownExtras().runOneSet = slices.DeleteFunc(slices.Clone(o.runOneSet), func(s uint64) bool {
				return s == j.seq
			})
			q.removeDependent(o, j.seq)
			q.blockRunOne(o)
			q.markChanged(o)
		}
	}
}

// linkRunOne makes a new job one of those of which only one is run: each of them knows
// all others.
func (q dependencyChanges) linkRunOne(j, other *job) {
	for _, seq := range append([]uint64{other.seq}, other.runOneSet...) {
		o := q.jobs[seq]
		if o == nil || o == j || slices.Contains(j.runOneSet, seq) {
			continue
		}
		for _, known := range j.runOneSet {
			q.linkRunOnePair(q.jobs[known], o)
		}
		q.linkRunOnePair(j, o)
	}
	for _, seq := range append([]uint64{j.seq}, j.runOneSet...) {
		q.blockRunOne(q.jobs[seq])
		q.markChanged(q.jobs[seq])
	}
}

func (q dependencyChanges) linkRunOnePair(a, b *job) {
	if !slices.Contains(a.runOneSet, b.seq) {
		a.ownExtras().runOneSet, b.ownExtras().runOneSet = append(a.runOneSet, b.seq), append(b.runOneSet, a.seq)
		q.addDependent(a, b.seq)
		q.addDependent(b, a.seq)
	}
}

// hasBegun reports whether a task of the job has an attempt, or has ended by itself.
func (j *job) hasBegun() bool { return j.active > 0 || j.counts[roost.Completed] > 0 }

// blockRunOne has a job wait, or not any more, as a rival of it has begun.
func (q dependencyChanges) blockRunOne(j *job) {
	stopped := slices.ContainsFunc(j.runOneSet, func(seq uint64) bool {
		o := q.jobs[seq]
		return o != nil && o.hasBegun()
	})
	if stopped != j.runOneStarted {
		j.ownExtras().runOneStarted = stopped
		q.updateBlocked(j)
		q.markChanged(j)
	}
}

// updateRunOne is for when a job with rivals may have begun, or be as if it had not. One
// that ends without that is nobody's rival any more.
func (q dependencyChanges) updateRunOne(j *job) {
	if len(j.runOneSet) == 0 {
		return
	}
	others := j.runOneSet
	if j.isFinal() && !j.hasRun() {
		q.unlinkRunOne(j)
	}
	for _, seq := range others {
		if o := q.jobs[seq]; o != nil {
			q.blockRunOne(o)
			q.toResolve[seq] = true
		}
	}
	q.blockRunOne(j) // it may be back among those that have not ended
}

// hasRun reports whether the processes of a task of the job were started, whatever came
// of it.
func (j *job) hasRun() bool { return j.firstStarted != 0 || j.counts[roost.Completed] > 0 }

// updateBlocked brings the tasks of a job to where they stand by what it waits for.
func (q dependencyChanges) updateBlocked(j *job) {
	from, to := roost.Idle, roost.Blocked
	if !j.isBlocked() {
		from, to = to, from
	}
	each := j.waitsByIndex() && !j.isBlocked()
	if j.counts[from] == 0 && !each {
		return
	}
	q.batchReady(j, func() {
		for i := range j.state {
			switch {
			case j.state[i] != from || waitsForRestart(j, i):
			case each && waitsForIndex(q.jobTable, j, i):
			default:
				q.setTaskState(j, i, to)
			}
		}
	})
}

// releaseCorresponding has the tasks go on that waited for one of this job to succeed.
func (q dependencyChanges) releaseCorresponding(other *job, ended int) {
	if !q.countedDependents[other.seq] {
		return
	}
	index := other.names().index(ended)
	for seq := range q.dependents[other.seq] {
		j := q.jobs[seq]
		if j == nil || !j.waitsByIndex() || j.isBlocked() {
			continue
		}
		first, end := tasksOfIndex(j, index)
		for i := first; i < end; i++ {
			if j.state[i] == roost.Blocked && !waitsForRestart(j, i) && !waitsForIndex(q.jobTable, j, i) {
				q.setTaskState(j, i, roost.Idle)
				q.markChanged(j)
			}
		}
	}
}

// tasksOfIndex is which tasks have an index of the user's; none when there is no such
// index.
func tasksOfIndex(j *job, index int) (first, end int) {
	n := j.tasksPerIndex()
	first = j.firstFromIndex(index) * n
	if index < 0 || first >= len(j.state) || j.names().index(first) != index {
		return 0, 0
	}
	return first, min(first+n, len(j.state))
}

// waitsForIndex reports whether a task waits for one of another array with its index.
func waitsForIndex(q *jobTable, j *job, i int) bool {
	if mutant.Active(mutant.IndexUnchecked) {
		return false
	}
	index := j.names().index(i)
	return slices.ContainsFunc(j.dependencies, func(w eventlog.JobDependency) bool {
		return w.Type == eventlog.AfterCorr && !hasIndexSucceeded(q.jobs[w.Job], index)
	})
}

// hasIndexSucceeded reports whether the tasks of a job with an index have.
func hasIndexSucceeded(j *job, index int) bool {
	if j == nil {
		return false
	}
	first, end := tasksOfIndex(j, index)
	for i := first; i < end; i++ {
		if j.state[i] != roost.Completed || !j.records.HasSucceeded(i) {
			return false
		}
	}
	return first < end
}

// isTaskBlocked reports whether a task waits for something else than a machine.
func isTaskBlocked(q *jobTable, j *job, i int) bool {
	return j.isBlocked() || j.waitsByIndex() && waitsForIndex(q, j, i)
}

// resolveDeparted strikes a job that leaves from what other jobs wait for, where it has
// ended as they want. Where it has not, they are dropped.
func (q dependencyChanges) resolveDeparted(gone *job) {
	for seq := range q.dependents[gone.seq] {
		j := q.jobs[seq]
		left := slices.Clone(j.dependencies)
		for i, w := range left {
			if w.Job == gone.seq {
				left[i].Due = dueAfter(w, gone)
			}
		}
		left = slices.DeleteFunc(left, func(w eventlog.JobDependency) bool {
			met, _, _ := q.dependencyState(w, SubmitLimits{})
			return w.Job == gone.seq && w.Due == 0 && met
		})
		if !slices.Equal(left, j.dependencies) {
			j.ownExtras().dependencies = left
			q.unsavedJobs[seq], q.toResolve[seq] = true, true
		}
	}
}

// updateDependencies finds out anew whether a job waits for others or for its time.
func (q dependencyChanges) updateDependencies(j *job, e eventlog.JobEvent) {
	if reached := j.spec.StartAfter == 0 || j.spec.StartAfter <= e.Time/1e9; reached != j.startTimeReached {
		j.ownExtras().startTimeReached = reached
	}
	for _, w := range j.dependencies {
		q.addDependent(j, w.Job)
	}
	for _, other := range j.runOneSet {
		q.addDependent(j, other)
	}
	if !j.startTimeReached {
		q.startTimes[j.seq] = true
	}
	q.updateBlocked(j)
}
