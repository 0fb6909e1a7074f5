package queue

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
)

// What becomes of one job has consequences for those that stand to it: they are
// unblocked, or dropped. Those are decided here (Followups) as if somebody asked for
// them, so that the log tells them. That of rivals only one runs cannot wait for a
// decision: it is folded in with the very event by which one of them starts.

// addDependent makes known that a job stands to another one, so that it is looked at when
// something happens to that.
func (q *Queue) addDependent(j *job, other uint64) {
	if other == 0 {
		return
	}
	if q.dependents[other] == nil {
		q.dependents[other] = map[uint64]bool{}
	}
	q.dependents[other][j.seq] = true
	q.toResolve[j.seq] = true
}

// removeDependent forgets that a job stands to another one, unless it still does in
// another way.
func (q *Queue) removeDependent(j *job, other uint64) {
	if slices.Contains(j.runOneSet, other) || slices.ContainsFunc(j.dependencies, func(w JobDependency) bool {
		return w.Job == other
	}) {
		return
	}
	delete(q.dependents[other], j.seq)
	if len(q.dependents[other]) == 0 {
		delete(q.dependents, other)
	}
}

// applyOwnDependencies takes in what a new job says of others, as far as it is a matter
// of its own.
func (q *Queue) applyOwnDependencies(j *job) {
	for _, w := range j.submission.Dependencies {
		switch {
		case w.Type == OnCount:
			j.expectedBefore += w.Count
		case w.Type == SyncCount:
			j.expectedSync += w.Count
		case w.Type.blocks():
			j.dependencies = append(j.dependencies, w)
			q.addDependent(j, w.Job)
			if w.Count != 0 {
				q.countedDependents[w.Job] = true
			}
		}
	}
}

// applyToOthers takes in what a new job says of others, as far as it changes them. It is
// for a job that is submitted, and not for one that is restored: the others have been
// told, then.
func (q *Queue) applyToOthers(j *job) {
	counted := map[uint64]bool{}
	for _, w := range j.submission.Dependencies {
		other := q.jobs[w.Job]
		if other == nil || other.isFinal() {
			continue
		}
		switch mirror := w.Type.mirroredType(); {
		case mirror != 0:
			if !counted[w.Job] {
				counted[w.Job] = true
				other.expectedBefore = max(other.expectedBefore-1, 0)
			}
			other.dependencies = append(slices.Clone(other.dependencies), JobDependency{mirror, j.seq, 0})
			q.addDependent(other, j.seq)
		case w.Type == SyncWith:
			other.expectedSync = max(other.expectedSync-1, 0)
			q.markToResolve(other)
		case w.Type == RunOne:
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
func (q *Queue) withdrawDependencies(j *job) {
	for _, w := range j.submission.Dependencies {
		if other, mirror := q.jobs[w.Job], w.Type.mirroredType(); other != nil && mirror != 0 && !other.isFinal() {
			other.dependencies = slices.DeleteFunc(slices.Clone(other.dependencies), func(o JobDependency) bool {
				return o == JobDependency{mirror, j.seq, 0}
			})
			q.removeDependent(other, j.seq)
			q.toResolve[other.seq] = true
			q.updateBlocked(other)
			q.markChanged(other)
		}
	}
	q.unlinkRunOne(j)
	q.clearDependencies(j)
	j.dependencies, j.expectedBefore, j.expectedSync, j.runOneStarted = nil, 0, 0, false
}

// unlinkRunOne makes a job nobody's rival any more.
func (q *Queue) unlinkRunOne(j *job) {
	rivals := j.runOneSet
	j.runOneSet, j.runOneStarted = nil, false
	for _, seq := range rivals {
		q.removeDependent(j, seq)
		if o := q.jobs[seq]; o != nil {
			o.runOneSet = slices.DeleteFunc(slices.Clone(o.runOneSet), func(s uint64) bool { return s == j.seq })
			q.removeDependent(o, j.seq)
			q.blockRunOne(o)
			q.markChanged(o)
		}
	}
}

// linkRunOne makes a new job one of those of which only one is run: each of them knows
// all others.
func (q *Queue) linkRunOne(j, other *job) {
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

func (q *Queue) linkRunOnePair(a, b *job) {
	if !slices.Contains(a.runOneSet, b.seq) {
		a.runOneSet, b.runOneSet = append(a.runOneSet, b.seq), append(b.runOneSet, a.seq)
		q.addDependent(a, b.seq)
		q.addDependent(b, a.seq)
	}
}

// hasBegun reports whether a task of the job has an attempt, or has ended by itself.
func (j *job) hasBegun() bool { return j.active > 0 || j.counts[roost.Completed] > 0 }

// blockRunOne has a job wait, or not any more, as a rival of it has begun.
func (q *Queue) blockRunOne(j *job) {
	stopped := slices.ContainsFunc(j.runOneSet, func(seq uint64) bool {
		o := q.jobs[seq]
		return o != nil && o.hasBegun()
	})
	if stopped != j.runOneStarted {
		j.runOneStarted = stopped
		q.updateBlocked(j)
		q.markChanged(j)
	}
}

// updateRunOne is for when a job with rivals may have begun, or be as if it had not. One
// that ends without that is nobody's rival any more.
func (q *Queue) updateRunOne(j *job) {
	if len(j.runOneSet) == 0 {
		return
	}
	rivals := j.runOneSet
	if j.isFinal() && !j.hasRun() {
		q.unlinkRunOne(j)
	}
	for _, seq := range rivals {
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
func (q *Queue) updateBlocked(j *job) {
	from, to := roost.Idle, roost.Blocked
	if !j.isBlocked() {
		from, to = to, from
	}
	if j.counts[from] == 0 {
		return
	}
	q.batchReady(j, func() {
		for i := range j.state {
			if j.state[i] == from {
				q.setTaskState(j, i, to)
			}
		}
	})
}

// Followups decides what follows for jobs that wait for others or for their time: they
// are unblocked, or dropped when what they wait for cannot come any more. Asking twice is
// harmless.
func (q *Queue) Followups(now time.Time) (events []JobEvent) {
	for seq := range q.startTimes {
		if now.Unix() >= q.jobs[seq].spec.startAfter {
			q.toResolve[seq] = true
		}
	}
	for _, seq := range takeAll(&q.toResolve) {
		if j := q.jobs[seq]; j != nil && !j.isFinal() {
			events = append(events, q.followup(now, j)...)
		}
	}
	return events
}

func (q *Queue) followup(now time.Time, j *job) []JobEvent {
	drop := func(text string, other uint64) []JobEvent {
		return []JobEvent{{Type: Dropped, Time: now.UnixNano(), Job: j.seq, Reason: q.dropReason(j, text, other)}}
	}
	for _, seq := range j.runOneSet {
		if o := q.jobs[seq]; o == nil || o.isFinal() && o.hasRun() { // who did not run is no rival any more
			return drop("only one of it and job %d was to run, and that has ended", seq)
		}
	}
	open := 0
	for _, w := range j.dependencies {
		// A job that has left the queue was final when it did, and its dependants were
		// ripe before that.
		met, dead, err := q.dependencyState(w, SubmitLimits{})
		switch {
		case dead || err != nil || met && q.neverRan(j, w):
			return drop("it was to run "+w.Type.String()+" job %d, and that has ended otherwise", w.Job)
		case !met:
			open++
		}
	}
	if open == 0 && j.expectedBefore == 0 && j.expectedSync == 0 && now.Unix() >= j.spec.startAfter &&
		(len(j.dependencies) > 0 || !j.startTimeReached) {
		return []JobEvent{{Type: Unblocked, Time: now.UnixNano(), Job: j.seq}}
	}
	return nil
}

// neverRan reports whether a job of qsub waits for the end, or the failure, of one that
// was removed while it was held or waited for others itself: that takes all with it that
// wait for it, however they do (OpenPBS, depend_on_term). Other jobs run when such a one
// is gone.
func (q *Queue) neverRan(j *job, w JobDependency) bool {
	other := q.jobs[w.Job]
	return j.spec.fromQsub && other != nil && other.removedUnstarted && !other.hasRun() && w.Count == 0 &&
		(w.Type == AfterAny || w.Type == AfterNotOK)
}

// dropReason says why a job is dropped. Clients of PBS look for its sentence.
func (q *Queue) dropReason(j *job, text string, other uint64) string {
	if j.spec.fromQsub {
		return fmt.Sprintf("Job deleted as result of dependency on job %v", roost.JobID{Seq: other, Host: q.host})
	}
	return fmt.Sprintf(text, other)
}

// blockedReason says what a blocked job waits for.
func (j *job) blockedReason() string {
	switch {
	case len(j.dependencies) > 1:
		return fmt.Sprintf("waits: %v job %d, and %d more", j.dependencies[0].Type, j.dependencies[0].Job,
			len(j.dependencies)-1)
	case len(j.dependencies) == 1:
		return fmt.Sprintf("waits: %v job %d", j.dependencies[0].Type, j.dependencies[0].Job)
	case j.expectedBefore > 0:
		return fmt.Sprintf("waits until %d more jobs are submitted that are to come before it", j.expectedBefore)
	case j.expectedSync > 0:
		return fmt.Sprintf("waits until %d more jobs are submitted that are to start with it", j.expectedSync)
	case j.runOneStarted:
		return fmt.Sprintf("waits: only one of it and job %d is to run", j.runOneSet[0])
	}
	return "waits for its start time"
}

// DependencyText tells what a job still says of others, and others of it, as PBS writes
// it: "afterok:12.host", "on:2", "beforeok:14.host".
func (q *Queue) DependencyText(seq uint64) (list []string) {
	j := q.jobs[seq]
	if j == nil {
		return nil
	}
	if j.expectedBefore > 0 {
		list = append(list, JobDependency{Type: OnCount, Count: j.expectedBefore}.text(q.host))
	}
	if j.expectedSync > 0 {
		list = append(list, JobDependency{Type: SyncCount, Count: j.expectedSync}.text(q.host))
	}
	for _, w := range j.dependencies {
		list = append(list, w.text(q.host))
	}
	for _, other := range slices.Sorted(slices.Values(j.runOneSet)) {
		list = append(list, JobDependency{Type: RunOne, Job: other}.text(q.host))
	}
	for _, other := range slices.Sorted(maps.Keys(q.dependents[seq])) {
		if o := q.jobs[other]; o != nil {
			for _, w := range o.dependencies {
				if mirror := w.Type.mirrorOf(); w.Job == seq && mirror != 0 {
					list = append(list, JobDependency{mirror, other, 0}.text(q.host))
				}
			}
		}
	}
	return list
}
