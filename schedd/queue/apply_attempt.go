package queue

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// maxMachineFailures is after how many machine failures in a row a task is held instead
// of tried again.
const maxMachineFailures = 5

// failureWindow is for how long further machine failures count as one with the first. A
// machine whose disk is full spoils five attempts in a tenth of a second, and the sixth
// succeeds on another.
const failureWindow = 10 * time.Second

// maxAttempts is after how many attempts a task is held that has them counted (OpenPBS,
// qsub -W run_count).
const maxAttempts = 20

func (q *Queue) applyAssigned(j *job, e eventlog.JobEvent) {
	r := j.records.MakeOwn(e.Index)
	if r.Live || e.Attempt != j.distrust.nextAttempt(j.records.Get(e.Index)) {
		panic(fmt.Sprintf("queue: attempt %d of %v after %d (live: %v)", e.Attempt, j.id(q.host).Task(e.Index),
			r.Attempt, r.Live))
	}
	r.Attempt, r.Live, r.Node, r.Address, r.Claim = e.Attempt, true, e.Node, e.Address, e.Claim
	r.Placement, r.OwnerReason, r.AlsoByUser, r.RequeueWanted = "", "", false, false
	r.Assigned, r.Started, r.Ended, r.Exit = e.Time, 0, 0, nil
	r.AllocIndex, r.AllocAttempt = e.AllocIndex, e.AllocAttempt
	q.gang().beginEpoch(j, e.Index)
	setOrigin(r, e.Image)
	serviceTasks{j}.beginAttempt(e.Index, r, e.Time)
	j.active++
	q.setTaskState(j, e.Index, roost.Starting)
	q.updateMaxRunning(j)
}

// endAttempt ends the live attempt of a task.
func (q *Queue) endAttempt(j *job, e eventlog.JobEvent) *eventlog.TaskRecord {
	r := q.liveRecord(j, e)
	r.Live, r.Ended, r.Suspended, j.lastEnded = false, e.Time, nil, max(j.lastEnded, e.Time)
	if r.RequeueWanted || revisionsOf(j).isStopping(e.Index) { // from the beginning
		q.dropAllImages(j, e.Index)
	}
	q.gang().noteEndForEpoch(j, e, r.RequeueWanted)
	r.OwnerReason, r.AlsoByUser, r.Resize = "", false, nil
	if r.Service != nil {
		serviceTasks{j}.setState(e.Index, r, roost.NoServiceState, e.Time)
		r.Service.Updated.NoteExit(e.Exit, r.IsEnding())
	}
	delete(j.evictionWaits, e.Index)
	delete(q.evicted, q.attemptOf(j, e.Index))
	delete(q.uses, j.id(q.host).Task(e.Index))
	j.active--
	return r
}

func (q *Queue) applyEnded(j *job, e eventlog.JobEvent) {
	was := j.records.Own(e.Index)
	stopped := was != nil && was.Service != nil && was.IsEnding()
	failedCheck := endsForCheck(was, e.Exit)
	r, x := q.endAttempt(j, e), e.Exit
	r.Exit = x
	endedTasks{q}.addRunTime(j, r, x.Wall)
	if q.gang().absorbEnded(j, e.Index, r) {
		return
	}
	if failedCheck {
		q.restartTask(j, e.Index, r)
		return
	}
	if j.spec.Service != nil && endsAnyTask(x, r) {
		if stopped { // it was to end, whatever it said
			q.requeueOrHold(j, e.Index, r)
		} else {
			q.restartTask(j, e.Index, r)
		}
		return
	}
	if j.spec.IsAlloc && endsAnyTask(x, r) { // it was to stay
		q.machineFailure(j, e.Index, r, "the process that kept the alloc open: "+x.Describe())
		return
	}
	switch x.Cause {
	case eventlog.CauseExited, eventlog.CauseWalltime, eventlog.CauseMemory, eventlog.CauseGPUMemory,
		eventlog.CauseDisk, eventlog.CauseCPUTime, eventlog.CauseVirtualMemory,
		eventlog.CausePrologue:
		endedTasks{q}.endByItself(j, e.Index, r)
	case eventlog.CauseRestore:
		if r.Checkpoints == nil || r.Checkpoints.OriginSequence == 0 { // there was none
			q.machineFailure(j, e.Index, r, x.Reason)
			return
		}
		q.countRestoreFailure(j, e.Index, r.Checkpoints)
		q.requeueInterrupted(j, e, r, x.Reason)
	case eventlog.CauseLaunch:
		if j.spec.FromQsub || j.spec.SubmitNodeTask { // somebody waits for its end, and looks there
			r.MachineFailures = 0
			q.dropAllImages(j, e.Index)
			q.completeTask(j, e.Index, true)
			return
		}
		if r.HoldReason == "" {
			r.HoldWanted, r.HoldReason = true, x.Reason
		}
		q.requeueOrHold(j, e.Index, r)
	case eventlog.CauseMachine:
		q.machineFailure(j, e.Index, r, x.Reason)
	default:
		q.requeueInterrupted(j, e, r, x.Reason)
	}
}

// endedTasks is the queue as it changes by the ends of programs.
type endedTasks struct{ *Queue }

// endByItself is for an attempt that no machine and nobody else has ended.
func (q endedTasks) endByItself(j *job, i int, r *eventlog.TaskRecord) {
	x := r.Exit
	r.MachineFailures = 0
	q.recordRuntime(j, i, x.Wall)
	if isRestartExit(j.spec.Checkpoints, x) {
		q.requeueOrHold(j, i, countRestart(r, x))
		return
	}
	// what went wrong would go wrong again; in a gang it may be the loss of another
	if x.Cause != eventlog.CauseWalltime && (x.IsSuccess() || !savesTogether(j)) {
		q.dropAllImages(j, i)
	}
	if q.applyVerdict(j, i, r, x.Verdict) {
		return
	}
	if x.IsSuccess() {
		q.completeTask(j, i, false)
	} else if r.JobFailures++; r.JobFailures <= j.spec.Retries && !r.RemoveWanted {
		q.requeueOrHold(j, i, resetWalltime(r))
	} else {
		q.completeTask(j, i, true)
	}
}

func (q *Queue) applyLost(j *job, e eventlog.JobEvent) {
	r := q.endAttempt(j, e)
	r.Exit = nil
	if r.Started != 0 {
		endedTasks{q}.addRunTime(j, r, max(e.Time-r.Started, 0))
	}
	if !q.gang().absorbEnded(j, e.Index, r) {
		q.requeueInterrupted(j, e, r, e.Reason)
	}
}

// completeTask makes a task final by its own doing, whatever was asked of it meanwhile.
func (q *Queue) completeTask(j *job, i int, failed bool) {
	if failed {
		j.failed++
	} else {
		j.records.Compact(i)
	}
	q.setTaskState(j, i, roost.Completed)
	q.gang().endMPIGang(j, i)
	if !failed {
		q.dependencies().releaseCorresponding(j, i)
	}
}

// machineFailure is for an attempt that a machine spoiled.
func (q *Queue) machineFailure(j *job, i int, r *eventlog.TaskRecord, why string) {
	if r.MachineFailures > 0 && time.Duration(r.Ended-r.LastMachineFailure) < failureWindow &&
		r.Ended >= r.LastMachineFailure {
		q.requeueOrHold(j, i, r)
		return
	}
	r.LastMachineFailure = r.Ended
	if r.MachineFailures++; r.MachineFailures >= maxMachineFailures && !r.HoldWanted {
		r.HoldWanted, r.HoldReason, r.MachineFailures = true,
			fmt.Sprintf("%d attempts in a row were spoiled by machines, the last one: %s", maxMachineFailures, why), 0
	}
	q.requeueOrHold(j, i, r)
}

// requeueInterrupted is for an attempt that was ended before it was finished: it is made
// again, if it may be.
func (q *Queue) requeueInterrupted(j *job, e eventlog.JobEvent, r *eventlog.TaskRecord, why string) {
	once := !j.spec.Rerunnable && !r.HoldWanted && !r.RequeueWanted && r.NewestImage() == nil
	switch {
	case once && e.Force && !r.RemoveWanted:
		q.failNotRerunnable(j, e.Index, r, why)
		return
	case once:
		r.HoldWanted, r.HoldReason = true, "it was interrupted and may not be run twice: "+why
	}
	q.requeueOrHold(j, e.Index, r)
}

// failNotRerunnable ends a task that was interrupted and may not be run twice.
func (q *Queue) failNotRerunnable(j *job, i int, r *eventlog.TaskRecord, why string) {
	x := eventlog.AttemptExit{Cause: eventlog.CauseMachine, Signal: sigkill}
	if r.Exit != nil {
		x = *r.Exit
	}
	if (x.Code == 0 || x.Code == x.SuccessCode) && x.Signal == 0 { // whatever it said before that, it has not succeeded
		x.Signal = sigkill
	}
	x.Reason, r.MachineFailures = "it was interrupted and may not be run twice: "+why, 0
	r.Exit = &x
	q.dropAllImages(j, i)
	q.completeTask(j, i, true)
}

// requeueOrHold puts a task back, or where somebody wanted it meanwhile.
func (q *Queue) requeueOrHold(j *job, i int, r *eventlog.TaskRecord) {
	delete(j.urgent, i)
	q.gang().joinEpoch(j, i)
	q.updateRestoreClass(j, i)
	if n := j.spec.RunCount + j.distrust.attemptCount(r); j.spec.RunCount >= 0 && n > maxAttempts && !r.HoldWanted {
		r.HoldWanted, r.HoldReason = true, fmt.Sprintf("run_count: it was run %d times, and %d are the most", n,
			maxAttempts)
	}
	switch {
	case r.RemoveWanted:
		q.dropAllImages(j, i)
		q.setTaskState(j, i, roost.Removed)
	case r.HoldWanted:
		q.setTaskState(j, i, roost.Held)
	case isTaskBlocked(q.jobTable, j, i):
		q.setTaskState(j, i, roost.Blocked)
	default:
		q.setTaskState(j, i, roost.Idle)
	}
	if !j.state[i].IsFinal() {
		q.gang().requeueRestOfGang(j, i)
		q.reclaimReleased(j, i)
	}
}
