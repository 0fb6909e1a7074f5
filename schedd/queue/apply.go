package queue

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// Apply folds an event into the state. It panics on one that the state does not allow:
// what stands in the log was decided on this very state.
func (q *Queue) Apply(e eventlog.JobEvent) {
	q.eventTime = e.Time
	if e.Type == eventlog.Submitted {
		q.applySubmitted(e)
		q.dependencies().applyToOthers(q.jobs[e.Job])
		return
	}
	if e.Type == eventlog.Returned {
		q.applyReturned(e)
		return
	}
	j := eventJob(q.jobTable, &e)
	serviceTasks{j}.markTasks(&e) // budgets are asked meanwhile
	switch e.Type {
	case eventlog.Assigned:
		q.applyAssigned(j, e)
	case eventlog.Checkpointed, eventlog.CheckpointFailed, eventlog.CheckpointBad, eventlog.GangSaved:
		q.applyCheckpointEvent(j, e)
	case eventlog.Started:
		r := q.liveRecord(j, e)
		r.Started, r.Placement = e.Time, e.Placement
		if j.firstStarted == 0 {
			j.firstStarted = e.Time
		}
		q.setTaskState(j, e.Index, roost.Running)
		serviceTasks{j}.start(e.Index, r, e.Time)
		taskResizes{q}.followOne(j, e.Index, e.Time)
		q.markToResolve(j)
	case eventlog.OwnerSuspended, eventlog.OwnerResumed:
		q.applyOwnerSuspension(j, e)
	case eventlog.Ended:
		q.applyEnded(j, e)
		q.updateMaxRunning(j)
	case eventlog.Lost:
		q.applyLost(j, e)
		q.updateMaxRunning(j)
	case eventlog.Held, eventlog.Released, eventlog.RemovalRequested, eventlog.Dropped, eventlog.Retried,
		eventlog.Suspended, eventlog.Resumed, eventlog.Requeued:
		if d := j.distrust.after(e); d != j.distrust {
			j.ownExtras().distrust = d
		}
		q.changeTasks(j, e, q.taskChange(j, e))
	case eventlog.Unblocked:
		q.applyUnblocked(j)
	case eventlog.Ticked, eventlog.TickSkipped, eventlog.Signalled: // they change no task
	case eventlog.Admitted:
		delete(q.deferredJobs, j.seq)
		taskResizes{q}.followAdmission(j, e)
	case eventlog.Altered:
		q.applyAltered(j, e)
	case eventlog.Ordered:
		q.applyOrdered(j, e)
	case eventlog.RunRequested:
		q.runRequested(j, e)
	case eventlog.RunDenied:
		q.runDenied(j, e)
	case eventlog.NodesReleased:
		q.applyNodesReleased(j, e)
	case eventlog.Purged:
		q.applyPurged(j)
		return
	default:
		q.applyServiceEvent(j, e)
	}
	serviceTasks{j}.markTasks(&e)
	logPartEvent(q, j, &e)
	q.advanceSchedule(j, e)
	q.dependencies().updateRunOne(j)
	q.markChanged(j)
}

// eventJob is the job that an event is of.
func eventJob(q *jobTable, e *eventlog.JobEvent) *job {
	j := q.jobs[e.Job]
	if j == nil {
		panic(fmt.Sprintf("queue: %v of job %d, which is not there", e.Type, e.Job))
	}
	return j
}

// applySubmitted takes a job in.
func (q *Queue) applySubmitted(e eventlog.JobEvent) {
	s := e.Submission
	p, name, err := q.specs.ReadText(s.Ad)
	if err != nil {
		panic(fmt.Sprintf("queue: the ad of job %d: %v", e.Job, err))
	}
	j := &job{
		seq: e.Job, submission: q.shareSubmission(s), spec: p, texts: packTexts(s, name),
		ad: q.adTexts.Pack(s.UID, s.Ad), submitted: e.Time, orderTime: e.Time, orderRank: e.Job,
		countedDemand: q.shareDemand(QuotaDemand{}), jobExtras: q.noExtras,
	}
	if p.StartAfter != 0 {
		j.ownExtras().startTimeReached = false
	}
	if p.ArrayIndex != "" {
		j.ownExtras().indexes = jobad.IndexesOf(p.ArrayIndex, s.Count/p.TasksPerIndex())
	}
	if j.state = j.singleState[:]; s.Count > 1 {
		j.state = make([]roost.TaskState, s.Count)
	}
	j.records.Tasks = s.Count
	q.jobs[j.seq] = j
	addNumbers(q.jobTable, j)
	if s.DeferredAdmission {
		q.deferredJobs[j.seq] = true
	}
	q.addKeyJob(j.texts.key(), j.seq)
	q.addSchedule(j)
	q.addFlow(j, s)
	q.addPolicy(j)
	if in := p.Inside.Alloc; in != 0 {
		q.inside[in] = append(q.inside[in], j.seq)
	}
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
	} else if j.isBlocked() || j.waitsByIndex() {
		first = roost.Blocked
	}
	for i := range j.state {
		j.state[i] = first
	}
	j.counts[first] = int32(s.Count)
	q.stateTotals.add(j, 1)
	j.formGangs()
	q.countOpen(j, s.Count)
	q.changes += s.Count
	if first == roost.Idle {
		q.makeAllReady(j)
	}
	q.markChanged(j)
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
	q.stateTotals.add(j, -1)
	delete(q.jobs, j.seq)
	removeNumbers(q.jobTable, j)
	delete(q.deferredJobs, j.seq)
	delete(q.finalJobs, j.seq)
	delete(q.policyJobs, j.seq)
	delete(q.services, j.seq)
	delete(q.scaled, j.seq)
	delete(q.savingJobs, j.seq)
	q.unsavedJobs[j.seq] = true // its snapshot is to go, too
	q.removeKeyJob(j.texts.key(), j.seq)
	q.removeSchedule(j)
	q.removeFlow(j)
	leaveAlloc(q.jobTable, j)
	q.changedJobs[j.seq] = true
}
