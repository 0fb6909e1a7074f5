package queue

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// A job may be one program that has several machines, as PBS has it: then its tasks are
// one gang, of which the first leads. It runs the program; the others hold what they have
// of their machines, where the program starts processes of its own (pbsdsh). To its user
// it is one job of one task:
//
//	the leader ends for good   the others are told to end, and count as done in any case
//	another ends for good      the leader is told to end, and fails with that
//	any is interrupted         all are made again, as in any gang
//
// Whatever is asked of such a job is asked of all of its tasks, but for signals, which
// are the program's.
//
// An array of such programs has a gang for each, one behind the other. To its user it has
// as many tasks as it has gangs, and the indexes that he gave are theirs.

// isPrimary reports whether a task leads the others of its gang.
func (j *job) isPrimary(i int) bool { return j.spec.MPIGang && i == j.primaryOf(i) }

// isSecondary reports whether a task holds what it has for the leader of its gang.
func (j *job) isSecondary(i int) bool { return j.spec.MPIGang && i != j.primaryOf(i) }

// primaryOf is the task that leads the gang of another; of a job that none leads, the
// task itself.
func (j *job) primaryOf(i int) int {
	if !j.spec.MPIGang {
		return i
	}
	return i - i%j.spec.GangSize
}

// lastOfGang is the last task of the gang that one leads.
func (j *job) lastOfGang(head int) int { return head + j.spec.GangSize - 1 }

// tasksPerIndex is how many tasks have one index of an array between them.
func (j *job) tasksPerIndex() int { return j.spec.TasksPerIndex() }

// wholeGangs is what is meant where something is asked of some tasks of a job.
func (j *job) wholeGangs(t TaskSelector) TaskSelector {
	switch {
	case !j.spec.MPIGang:
		return t
	case j.spec.GangSize == len(j.state):
		t.Ranges = nil
		return t
	}
	var gangs []eventlog.IndexRange
	for _, r := range t.Ranges {
		first, last := j.primaryOf(r.First), j.lastOfGang(j.primaryOf(r.Last))
		if n := len(gangs); n > 0 && first <= gangs[n-1].Last+1 {
			gangs[n-1].Last = max(gangs[n-1].Last, last)
		} else {
			gangs = append(gangs, eventlog.IndexRange{First: first, Last: last})
		}
	}
	t.Ranges = gangs
	return t
}

// failedSecondary is the first secondary task of a gang that has completed while its
// leader has not; -1 for none.
func (j *job) failedSecondary(head int) int {
	if !j.spec.MPIGang || j.state[head].IsFinal() || j.counts[roost.Completed] == 0 {
		return -1
	}
	for i := head + 1; i <= j.lastOfGang(head); i++ {
		if j.state[i] == roost.Completed && !j.released[i] {
			return i
		}
	}
	return -1
}

// absorbEnded ends a task whose gang has ended already, and reports whether that was so.
func (q gangChanges) absorbEnded(j *job, i int, r *eventlog.TaskRecord) bool {
	head := j.primaryOf(i)
	switch k := j.failedSecondary(head); {
	case j.isSecondary(i) && (j.state[head].IsFinal() || j.released[i]):
		q.completeSecondary(j, i)
		return true
	case j.isPrimary(i) && k >= 0 && !r.RemoveWanted && !(r.Exit != nil && r.Exit.IsSuccess()):
		q.failPrimary(j, r, k)
		q.completeTask(j, i, true)
		return true
	}
	return false
}

// failPrimary has the leader fail with what another of its gang has failed with.
func (q gangChanges) failPrimary(j *job, r *eventlog.TaskRecord, k int) {
	with := j.records.Get(k)
	x := eventlog.AttemptExit{}
	if r.Exit != nil {
		x = *r.Exit
	}
	x.Code, x.Signal, x.Core, x.Cause = with.Exit.Code, with.Exit.Signal, false, with.Exit.Cause
	if x.IsSuccess() { // which is too early, and none of the leader's
		x.Signal = sigkill
	}
	x.Reason = fmt.Sprintf("chunk %d of it, on %s, has ended: %s", k-j.primaryOf(k), with.Node, with.Exit.Describe())
	r.Exit = &x
}

// retryMPIGangs decides to retry the gangs whose leader, or a part before it, has failed.
// All of such a gang runs again, as the parts that did not fail have no program of their
// own.
func (j *job) retryMPIGangs(t TaskSelector, events []eventlog.JobEvent) ([]eventlog.JobEvent, error) {
	ending := false
	var failed []eventlog.IndexRange
	j.wholeGangs(t).eachIndex(len(j.state), func(i int) {
		if !j.isPrimary(i) {
			return
		}
		bad := false
		for k := i; k <= j.lastOfGang(i); k++ {
			bad = bad || j.state[k] == roost.Removed || j.state[k] == roost.Completed && !j.records.HasSucceeded(k)
		}
		switch over := j.gangs.openTasks[i/j.spec.GangSize] == 0; {
		case bad && over:
			failed = append(failed, eventlog.IndexRange{First: i, Last: j.lastOfGang(i)})
		case j.state[i].IsFinal() && !over:
			ending = true
		}
	})
	switch {
	case len(failed) == 0 && ending:
		return nil, fmt.Errorf("%v: %w: %s", t, roost.Conflict, endingReason)
	case len(failed) == 0:
		return nil, noneFailed(t)
	}
	events[0].Ranges = j.wholeGangs(TaskSelector{Ranges: failed}).Ranges
	return events, nil
}

// sigkill is the number of the signal that ends whatever gets it, on Linux.
const sigkill = 9

// endMPIGang has the others of a led gang follow one that has ended for good.
func (q gangChanges) endMPIGang(j *job, i int) {
	head := j.primaryOf(i)
	switch {
	case j.isPrimary(i):
		for k := i + 1; k <= j.lastOfGang(i); k++ {
			q.endSecondary(j, k)
		}
	case j.isSecondary(i) && j.state[head].IsActive():
		q.vacates = append(q.vacates, VacateAttempt{Attempt: q.attemptOf(j, head),
			Reason: fmt.Sprintf("chunk %d of it has ended", i-head)})
	case j.isSecondary(i) && !j.state[head].IsFinal():
		r := j.records.MakeOwn(head)
		q.failPrimary(j, r, i)
		q.completeTask(j, head, true)
	}
}

// endSecondary ends a task whose leader has ended.
func (q gangChanges) endSecondary(j *job, k int) {
	switch s := j.state[k]; {
	case s.IsActive():
		q.vacates = append(q.vacates, VacateAttempt{Attempt: q.attemptOf(j, k), Fast: true,
			Reason: "its job has ended"})
	case !s.IsFinal():
		q.completeSecondary(j, k)
	}
}

// completeSecondary makes a task final that has followed its leader to the end. It had no
// program that could have failed.
func (q gangChanges) completeSecondary(j *job, k int) {
	r := j.records.MakeOwn(k)
	x := eventlog.AttemptExit{}
	if r.Exit != nil {
		x = eventlog.AttemptExit{Wall: r.Exit.Wall, User: r.Exit.User, System: r.Exit.System, MaxRSS: r.Exit.MaxRSS,
			Used: r.Exit.Used}
	}
	r.Exit, r.HoldWanted, r.RemoveWanted = &x, false, false
	q.dropAllImages(j, k)
	q.setTaskState(j, k, roost.Completed)
}

// repairMPIGang asks again for what a led gang has coming: the schedd may have ended
// before it could say so.
func (q gangChanges) repairMPIGang(j *job) {
	if !j.spec.MPIGang || j.isFinal() {
		return
	}
	for head := 0; head < len(j.state); head += j.spec.GangSize {
		if j.state[head].IsFinal() {
			q.endMPIGang(j, head)
		} else if k := j.failedSecondary(head); k >= 0 && j.state[head].IsActive() {
			q.endMPIGang(j, k)
		}
	}
}

// suspendGang freezes the rest of a led gang while the owner of one of its machines is
// back. A program whose parts wait for each other would only burn its walltime. They go
// on when no owner is there. Their states do not change, as nobody uses their own
// machines.
func (q gangChanges) suspendGang(j *job, i int) {
	if !j.spec.MPIGang {
		return
	}
	for k := j.primaryOf(i); k <= j.lastOfGang(j.primaryOf(i)); k++ {
		if j.state[k] == roost.Running && (k != i || j.suspendedWithGang(i)) {
			j.records.MakeOwn(k).OwnCheckpoints().Frozen = true
			q.freezes = append(q.freezes, FreezeAttempt{q.attemptOf(j, k), j.suspendedWithGang(k)})
		}
	}
}

// suspendedWithGang reports whether a task stands still for the owner of another machine
// of its job.
func (j *job) suspendedWithGang(i int) bool {
	k := j.suspendedForOwner(j.primaryOf(i))
	return k >= 0 && k != i
}

// suspendedForOwner is the first task of a led gang that the owner of its machine has
// suspended; -1 for none.
func (j *job) suspendedForOwner(head int) int {
	if j.spec.MPIGang && j.counts[roost.Suspended] > 0 {
		for k := head; k <= j.lastOfGang(head); k++ {
			if j.suspendedByOwner(k) {
				return k
			}
		}
	}
	return -1
}

// LimitCounting is as what limits count the tasks of a request.
type LimitCounting uint8

// As jobs of their own, together as one job, or not, because another request is that
// job's first.
const (
	CountEach LimitCounting = iota
	CountOnce
	CountedElsewhere
)

// LimitCounting says how limits on running jobs count the tasks of a request. Several
// tasks of a program that has several machines are one job, or one task of an array.
func (q *requestIndex) LimitCounting(id RequestID) LimitCounting {
	r := q.requests[id]
	if r == nil || r.mpiJob == 0 {
		return CountEach
	}
	if j := q.jobs[r.mpiJob]; j != nil && j.class(r.mpiGang*j.spec.GangSize).request != r {
		return CountedElsewhere
	}
	return CountOnce
}
