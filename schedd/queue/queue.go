package queue

import (
	"fmt"

	"github.com/roost-batch/roost"
)

// Queue holds the jobs of one schedd. Its parts are embedded: each has state of its own
// and the methods on it, and all of them are called on the queue. What needs several of
// them to change is here, below Apply.
//
//	jobTable           the jobs, and what is asked of one of them
//	statusView         what users are shown of jobs and tasks
//	taskDecisions      what users ask for, as events
//	attemptDecisions   what becomes of attempts, as events
//	submissionIndex    new jobs, by their submit keys
//	openTaskCounts     tasks that are not final, by user
//	stateTotals        all tasks, by band and state
//	dependencyIndex    which job waits for which
//	requestIndex       requests, and the ready tasks of each
//	runtimePredictor   how long the next attempt of a request takes
//	programBuilder     what an attempt runs
//	quotaDemands       what is held against quotas
//	pendingEffects     what the schedd is to do next
//	restartSchedule    tasks of services that wait for their restart
//	serviceUpdates     updates of services that go on
//	nodeDrains         machines whose tasks are to go elsewhere
//	serviceScaling     services whose number of tasks follows their load
//	taskPolicies       conditions on what becomes of tasks
//	flowIndex          flows that may go on, and their jobs that have changed
type Queue struct {
	*jobTable
	statusView
	taskDecisions
	attemptDecisions
	*submissionIndex
	*openTaskCounts
	*stateTotals
	*dependencyIndex
	*requestIndex
	*runtimePredictor
	programBuilder
	*quotaDemands
	*pendingEffects
	*restartSchedule
	*serviceUpdates
	*nodeDrains
	serviceScaling
	*flowIndex
	taskPolicies

	changes   int   // task states changed so far
	eventTime int64 // when what is being applied happened, unix nanoseconds
}

// New returns an empty queue of the schedd on that host.
func New(host string) *Queue {
	table, open := newJobTable(host), &openTaskCounts{openByUser: map[uint32]int{}}
	runtimes := &runtimePredictor{runtimesByUser: map[uint32]*lastRuntimes{}}
	quotas := newQuotaDemands(table)
	requests := newRequestIndex(table, runtimes)
	submissions := newSubmissionIndex(table, open)
	return &Queue{
		jobTable: table, statusView: statusView{table}, taskDecisions: taskDecisions{table},
		attemptDecisions: attemptDecisions{table}, openTaskCounts: open,
		submissionIndex:  submissions,
		stateTotals:      &stateTotals{},
		dependencyIndex:  newDependencyIndex(table),
		requestIndex:     requests,
		runtimePredictor: runtimes, programBuilder: programBuilder{table, runtimes},
		quotaDemands:   quotas,
		pendingEffects: newPendingEffects(table), restartSchedule: &restartSchedule{jobTable: table},
		serviceUpdates: newServiceUpdates(table, quotas), nodeDrains: newNodeDrains(table),
		serviceScaling: serviceScaling{table, requests}, taskPolicies: taskPolicies{table: table},
		flowIndex: &flowIndex{submissionIndex: submissions, laterFlows: map[uint64]bool{}},
	}
}

// ChangeCount counts the changes of task states so far.
func (q *Queue) ChangeCount() int { return q.changes }

// setTaskState is the one place where a task changes its state.
func (q *Queue) setTaskState(j *job, i int, to roost.TaskState) {
	from := j.state[i]
	if from == to {
		return
	}
	legal := to.IsFinal() && !from.IsFinal() || from.IsFinal() && (to == roost.Idle || to == roost.Blocked) ||
		!from.IsFinal() && !to.IsFinal()
	if !legal || to == roost.Starting && from != roost.Idle {
		panic(fmt.Sprintf("queue: task %v goes from %v to %v", j.id(q.host).Task(i), from, to))
	}
	j.state[i] = to
	notePolicyState(j, i, from, to, q.eventTime)
	if j.tallied != nil {
		j.tallied.Mark(i)
	}
	if from == roost.Blocked && j.waitingRestarts > 0 {
		q.endWait(j, i)
	}
	j.gangs.taskMoved(i, from, to)
	q.updateGangOrder(j, i, from, to)
	j.counts[from]--
	j.counts[to]++
	q.stateTotals.move(j, from, to)
	j.updateUserState(i)
	q.changes++
	switch {
	case to.IsFinal() && !from.IsFinal():
		q.countOpen(j, -1)
		j.class(i).open--
	case from.IsFinal() && !to.IsFinal():
		q.countOpen(j, 1)
		j.class(i).open++
	}
	q.setReady(j, i, to == roost.Idle)
	if j.spec.IsAlloc {
		q.WakeInside(j.seq)
	}
	if from == roost.Suspended || to == roost.Suspended {
		q.noteSuspension(j, i, to == roost.Suspended)
	}
	if j.urgent[i] != nil && to != roost.Idle && !to.IsActive() {
		delete(j.urgent, i)
		q.updateRestoreClass(j, i)
	}
	if to.IsFinal() && j.isFinal() {
		q.finalJobs[j.seq] = true
		q.markToResolve(j)
	} else if to.IsFinal() && q.countedDependents[j.seq] {
		q.markToResolve(j)
	}
}

// markChanged marks a job as changed.
func (q *Queue) markChanged(j *job) {
	q.changedJobs[j.seq], q.unsavedJobs[j.seq], q.demandChanged[j.seq] = true, true, true
	j.changes++
	if s := j.spec.Service; s != nil {
		q.services[j.seq] = true
		if s.Autoscale != nil || s.Sizes != nil {
			q.scaled[j.seq] = true
		} else {
			delete(q.scaled, j.seq)
		}
	}
	q.markUpdate(j)
	if j.flow != nil || j.part != nil {
		q.listPart(j)
	}
	j.eligible.update(j, q.eventTime)
}

// stateTotals counts the tasks of all jobs by band and state. Nobody has to look at each
// job for that.
type stateTotals struct {
	tasksInState [roost.MonitoringBand + 1][roost.Removed + 1]int
}

// TasksInState returns how many tasks of a band are in a state. Tasks of jobs that have
// gone into the history are not counted.
func (s *stateTotals) TasksInState(band roost.PriorityBand, state roost.TaskState) int {
	return s.tasksInState[band][state]
}

// move counts that a task of a job has changed its state.
func (s *stateTotals) move(j *job, from, to roost.TaskState) {
	s.tasksInState[j.spec.Band][from]--
	s.tasksInState[j.spec.Band][to]++
}

// add counts all tasks of a job, or with by = -1 no longer.
func (s *stateTotals) add(j *job, by int) {
	for state, n := range j.counts {
		s.tasksInState[j.spec.Band][state] += by * int(n)
	}
}
