package queue

import (
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// maxMachineFailures is after how many attempts in a row that a machine spoiled a task is
// held instead of tried again.
const maxMachineFailures = 5

// failureWindow is for how long after a failure others are taken to have the same cause,
// and do not count: a machine whose disk is full spoils five attempts in a tenth of a
// second, and the sixth goes well on another.
const failureWindow = 10 * time.Second

// maxAttempts is after how many attempts a task is held that has them counted (OpenPBS,
// qsub -W run_count).
const maxAttempts = 20

// Apply folds an event into the state. It panics on one that the state does not allow:
// what stands in the log was decided on this very state.
func (q *Queue) Apply(e JobEvent) {
	q.eventTime = e.Time
	if e.Type == Submitted {
		q.applySubmitted(e)
		q.dependencies().applyToOthers(q.jobs[e.Job])
		return
	}
	if e.Type == Returned {
		q.applyReturned(e)
		return
	}
	j := q.jobs[e.Job]
	if j == nil {
		panic(fmt.Sprintf("queue: %v of job %d, which is not there", e.Type, e.Job))
	}
	switch e.Type {
	case Assigned:
		q.applyAssigned(j, e)
	case Checkpointed, CheckpointFailed, CheckpointBad:
		q.applyCheckpointEvent(j, e)
	case Started:
		r := q.liveRecord(j, e)
		r.started, r.placement = e.Time, e.Placement
		if j.firstStarted == 0 {
			j.firstStarted = e.Time
		}
		q.setTaskState(j, e.Index, roost.Running)
		q.markToResolve(j)
	case OwnerSuspended, OwnerResumed:
		q.applyOwnerSuspension(j, e)
	case Ended:
		q.applyEnded(j, e)
		q.updateMaxRunning(j)
	case Lost:
		q.applyLost(j, e)
		q.updateMaxRunning(j)
	case Held, Released, RemovalRequested, Dropped, Retried, Suspended, Resumed, Requeued:
		j.distrust.apply(e)
		q.changeTasks(j, e, q.taskChange(j, e))
	case Unblocked:
		q.applyUnblocked(j)
	case Signalled: // a word to its processes, and none of ours
	case Admitted:
		delete(q.deferredJobs, j.seq)
	case Altered:
		q.applyAltered(j, e)
	case Ordered:
		q.applyOrdered(j, e)
	case RunRequested:
		q.runRequested(j, e)
	case RunDenied:
		q.runDenied(j, e)
	case Purged:
		q.applyPurged(j)
		return
	default:
		panic(fmt.Sprintf("queue: event %v", e.Type))
	}
	q.dependencies().updateRunOne(j)
	q.markChanged(j)
}

// applySubmitted takes a job in.
func (q *Queue) applySubmitted(e JobEvent) {
	s := e.Submission
	ad, err := classad.Parse(s.Ad)
	if err != nil {
		panic(fmt.Sprintf("queue: the ad of job %d: %v", e.Job, err))
	}
	p, err := jobad.ReadSpec(ad)
	if err != nil {
		panic(fmt.Sprintf("queue: the ad of job %d: %v", e.Job, err))
	}
	j := &job{seq: e.Job, submission: s, spec: p, submitted: e.Time, orderTime: e.Time, orderRank: e.Job,
		jobWaits: jobWaits{startTimeReached: p.StartAfter == 0}}
	j.alterations, _ = ad.Int(roost.AttrAlterations)
	indexes, _ := ad.Str(roost.AttrArrayIndex)
	j.indexes = jobad.IndexesOf(indexes, s.Count/p.TasksPerIndex())
	j.state, j.records.tasks = make([]roost.TaskState, s.Count), s.Count
	q.lastSeq = max(q.lastSeq, e.Job)
	q.jobs[j.seq] = j
	if s.DeferredAdmission {
		q.deferredJobs[j.seq] = true
	}
	q.jobsByKey[s.Key] = append(q.jobsByKey[s.Key], j.seq)
	q.formClasses(j)
	for i := range j.state {
		j.class(i).open++
	}
	q.dependencies().applyOwnDependencies(j)
	if !j.startTimeReached {
		q.startTimes[j.seq] = true
	}
	first := roost.Idle
	if p.HoldOnSubmit {
		first = roost.Held
	} else if j.isBlocked() {
		first = roost.Blocked
	}
	for i := range j.state {
		j.state[i] = first
	}
	j.counts[first] = s.Count
	j.formGangs()
	q.countOpen(j, s.Count)
	q.changes += s.Count
	if first == roost.Idle {
		q.makeAllReady(j)
	}
	q.markChanged(j)
}

func (q *Queue) applyAssigned(j *job, e JobEvent) {
	r := j.records.makeOwn(e.Index)
	if r.live || e.Attempt != j.distrust.nextAttempt(j.records.get(e.Index)) {
		panic(fmt.Sprintf("queue: attempt %d of %v after %d (live: %v)", e.Attempt, j.id(q.host).Task(e.Index),
			r.attempt, r.live))
	}
	r.attempt, r.live, r.node, r.address, r.claim = e.Attempt, true, e.Node, e.Address, e.Claim
	r.placement, r.ownerReason, r.alsoByUser, r.requeueWanted = "", "", false, false
	r.assigned, r.started, r.ended, r.exit = e.Time, 0, 0, nil
	setOrigin(r, e.Image)
	j.active++
	q.setTaskState(j, e.Index, roost.Starting)
	q.updateMaxRunning(j)
}

// endAttempt ends the live attempt of a task.
func (q *Queue) endAttempt(j *job, e JobEvent) *taskRecord {
	r := q.liveRecord(j, e)
	r.live, r.ended, j.lastEnded = false, e.Time, max(j.lastEnded, e.Time)
	if r.requeueWanted { // from the beginning
		q.dropAllImages(j, e.Index)
	}
	r.ownerReason, r.alsoByUser = "", false
	j.active--
	return r
}

func (q *Queue) applyEnded(j *job, e JobEvent) {
	r, x := q.endAttempt(j, e), e.Exit
	r.exit = x
	if q.gang().absorbEnded(j, e.Index, r) {
		return
	}
	switch x.Cause {
	case CauseExited, CauseWalltime, CauseMemory, CauseGPUMemory, CauseDisk, CauseCPUTime, CauseVirtualMemory,
		CausePrologue:
		r.machineFailures = 0
		q.recordRuntime(j, e.Index, x.Wall)
		if isRestartExit(j.spec.Checkpoints, x) {
			q.requeueOrHold(j, e.Index, countRestart(r, x))
			return
		}
		if x.Cause != CauseWalltime { // what went wrong would go wrong again
			q.dropAllImages(j, e.Index)
		}
		if x.IsSuccess() {
			q.completeTask(j, e.Index, false)
		} else if r.jobFailures++; r.jobFailures <= j.spec.Retries && !r.removeWanted {
			q.requeueOrHold(j, e.Index, resetWalltime(r))
		} else {
			q.completeTask(j, e.Index, true)
		}
	case CauseRestore:
		if r.checkpoints == nil || r.checkpoints.originSequence == 0 { // there was none
			q.machineFailure(j, e.Index, r, x.Reason)
			return
		}
		q.dropImage(j, e.Index, r.checkpoints.originSequence)
		q.requeueInterrupted(j, e, r, x.Reason)
	case CauseLaunch:
		if j.spec.FromQsub { // whose users wait for its end, and look there for what was wrong
			r.machineFailures = 0
			q.dropAllImages(j, e.Index)
			q.completeTask(j, e.Index, true)
			return
		}
		if r.holdReason == "" {
			r.holdWanted, r.holdReason = true, x.Reason
		}
		q.requeueOrHold(j, e.Index, r)
	case CauseMachine:
		q.machineFailure(j, e.Index, r, x.Reason)
	default:
		q.requeueInterrupted(j, e, r, x.Reason)
	}
}

func (q *Queue) applyLost(j *job, e JobEvent) {
	r := q.endAttempt(j, e)
	r.exit = nil
	if !q.gang().absorbEnded(j, e.Index, r) {
		q.requeueInterrupted(j, e, r, e.Reason)
	}
}

// completeTask makes a task final by its own doing, whatever was asked of it meanwhile.
func (q *Queue) completeTask(j *job, i int, failed bool) {
	if failed {
		j.failed++
	} else {
		j.records.compact(i)
	}
	q.setTaskState(j, i, roost.Completed)
	q.gang().endMPIGang(j, i)
}

// machineFailure is for an attempt that a machine spoiled.
func (q *Queue) machineFailure(j *job, i int, r *taskRecord, why string) {
	if r.machineFailures > 0 && time.Duration(r.ended-r.lastMachineFailure) < failureWindow &&
		r.ended >= r.lastMachineFailure {
		q.requeueOrHold(j, i, r)
		return
	}
	r.lastMachineFailure = r.ended
	if r.machineFailures++; r.machineFailures >= maxMachineFailures && !r.holdWanted {
		r.holdWanted, r.holdReason, r.machineFailures = true,
			fmt.Sprintf("%d attempts in a row were spoiled by machines, the last one: %s", maxMachineFailures, why), 0
	}
	q.requeueOrHold(j, i, r)
}

// requeueInterrupted is for an attempt that was ended before it was finished: it is made
// again, if it may be.
func (q *Queue) requeueInterrupted(j *job, e JobEvent, r *taskRecord, why string) {
	once := !j.spec.Rerunnable && !r.holdWanted && !r.requeueWanted && r.newestImage() == nil
	switch {
	case once && e.Force && !r.removeWanted:
		q.failNotRerunnable(j, e.Index, r, why)
		return
	case once:
		r.holdWanted, r.holdReason = true, "it was interrupted and may not be run twice: "+why
	}
	q.requeueOrHold(j, e.Index, r)
}

// failNotRerunnable ends a task that was interrupted and may not be run twice.
func (q *Queue) failNotRerunnable(j *job, i int, r *taskRecord, why string) {
	x := AttemptExit{Cause: CauseMachine, Signal: sigkill}
	if r.exit != nil {
		x = *r.exit
	}
	if x.Code == 0 && x.Signal == 0 { // whatever it said before that, it has not succeeded
		x.Signal = sigkill
	}
	x.Reason, r.machineFailures = "it was interrupted and may not be run twice: "+why, 0
	r.exit = &x
	q.dropAllImages(j, i)
	q.completeTask(j, i, true)
}

// requeueOrHold puts a task back, or where somebody wanted it meanwhile.
func (q *Queue) requeueOrHold(j *job, i int, r *taskRecord) {
	delete(j.urgent, i)
	q.updateRestoreClass(j, i)
	if n := j.spec.RunCount + j.distrust.attemptCount(r); j.spec.RunCount >= 0 && n > maxAttempts && !r.holdWanted {
		r.holdWanted, r.holdReason = true, fmt.Sprintf("run_count: it was run %d times, and %d are the most", n,
			maxAttempts)
	}
	switch {
	case r.removeWanted:
		q.dropAllImages(j, i)
		q.setTaskState(j, i, roost.Removed)
	case r.holdWanted:
		q.setTaskState(j, i, roost.Held)
	case j.isBlocked():
		q.setTaskState(j, i, roost.Blocked)
	default:
		q.setTaskState(j, i, roost.Idle)
	}
	if !j.state[i].IsFinal() {
		q.gang().requeueRestOfGang(j, i)
	}
}

func (q *Queue) applyPurged(j *job) {
	if !j.isFinal() {
		panic(fmt.Sprintf("queue: job %d is purged and not final", j.seq))
	}
	q.clearDependencies(j)
	q.updateDemands()
	q.dependencies().resolveDeparted(j)
	delete(q.dependents, j.seq)
	delete(q.countedDependents, j.seq)
	for i := range j.state {
		q.dropAllImages(j, i)
	}
	for _, c := range j.classes {
		q.leaveRequest(c)
	}
	delete(q.jobs, j.seq)
	delete(q.deferredJobs, j.seq)
	delete(q.finalJobs, j.seq)
	q.unsavedJobs[j.seq] = true // its snapshot is to go, too
	rest := slices.DeleteFunc(q.jobsByKey[j.submission.Key], func(seq uint64) bool { return seq == j.seq })
	if q.jobsByKey[j.submission.Key] = rest; len(rest) == 0 {
		delete(q.jobsByKey, j.submission.Key)
	}
	q.changedJobs[j.seq] = true
}

// resolveDeparted strikes a job that leaves from what other jobs wait for, where it has
// ended as they want. Where it has not, they are dropped.
func (q dependencyChanges) resolveDeparted(gone *job) {
	for seq := range q.dependents[gone.seq] {
		j := q.jobs[seq]
		before := len(j.dependencies)
		j.dependencies = slices.DeleteFunc(slices.Clone(j.dependencies), func(w JobDependency) bool {
			met, _, _ := q.dependencyState(w, SubmitLimits{})
			return w.Job == gone.seq && met
		})
		if len(j.dependencies) != before {
			q.unsavedJobs[seq], q.toResolve[seq] = true, true
		}
	}
}
