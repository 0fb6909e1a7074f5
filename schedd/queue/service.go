package queue

import (
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
	"github.com/roost-batch/roost/schedd/queue/restart"
	"github.com/roost-batch/roost/schedd/queue/update"
)

// A service is a job whose tasks are to run always. The state of a task's live attempt
// is what its machine says of its health:
//
//	Assigned ─▶ starting ─▶ ready ◀─▶ unready ─▶ (Ended, Lost)
//	               └──────────┴─────────┴─▶ leaving, lost
//
// A task without checks is ready when its processes run.

// RecordHealth decides that the health of a service's live attempt is another. It is
// false for old news. The check and its words are those that the machine gave. Of an
// attempt that starts the first ones are news.
func (q attemptDecisions) RecordHealth(now time.Time, a roost.AttemptID, s roost.ServiceState,
	check, detail string) (eventlog.JobEvent, bool) {
	if !q.IsLive(a) || q.jobs[a.Task.Job.Seq].spec.Service == nil {
		return eventlog.JobEvent{}, false
	}
	r := q.jobs[a.Task.Job.Seq].records.Own(a.Task.Index).Service
	if s == roost.NoServiceState || s > roost.ServiceLost || s == r.State && check == r.Check && detail == r.Detail {
		return eventlog.JobEvent{}, false
	}
	if s == roost.ServiceStarting && r.State != roost.ServiceLost && // as every attempt is at first
		(r.State != roost.ServiceStarting || detail == "" || r.Detail != "") {
		return eventlog.JobEvent{}, false
	}
	what := eventlog.BecameUnready
	if s == roost.ServiceReady {
		what = eventlog.BecameReady
	}
	e := eventAbout(now, what, a)
	e.ServiceState, e.HealthCheck, e.Reason = s, check, detail
	return e, true
}

// RecordSilence decides that a live attempt of a service is lost, as its machine does not
// answer. It may run, and is replaced when its lease has ended. It is false for one that
// is being stopped.
func (q attemptDecisions) RecordSilence(now time.Time, a roost.AttemptID, machine string) (eventlog.JobEvent, bool) {
	e, ok := q.RecordHealth(now, a, roost.ServiceLost, "", fmt.Sprintf("machine %s does not answer", machine))
	if !ok || q.jobs[a.Task.Job.Seq].records.Own(a.Task.Index).Service.State >= roost.ServiceLeaving {
		return eventlog.JobEvent{}, false
	}
	return e, true
}

// RecordReturn decides that the machine of a lost attempt answers, and has it. A task
// without checks is ready at once. With checks it is so when the machine says so.
func (q attemptDecisions) RecordReturn(now time.Time, a roost.AttemptID) (eventlog.JobEvent, bool) {
	j := q.jobs[a.Task.Job.Seq]
	if !q.IsLive(a) || j.spec.Service == nil ||
		j.records.Own(a.Task.Index).Service.State != roost.ServiceLost {
		return eventlog.JobEvent{}, false
	}
	to := roost.ServiceStarting
	if s := (serviceTasks{j}).serviceOf(a.Task.Index); !s.HasChecks && j.state[a.Task.Index] == roost.Running {
		to = roost.ServiceReady
	}
	return q.RecordHealth(now, a, to, "", "its machine answers again")
}

// ServiceOf returns the owner and the name of an attempt's service. It is false for an
// attempt of none.
func (q attemptDecisions) ServiceOf(a roost.AttemptID) (owner, name string, ok bool) {
	j := q.jobs[a.Task.Job.Seq]
	if j == nil || j.spec.Service == nil {
		return "", "", false
	}
	return j.submission.owner, j.texts.name(), true
}

// applyServiceEvent folds in what concerns services alone, or flows.
func (q *Queue) applyServiceEvent(j *job, e eventlog.JobEvent) {
	switch e.Type {
	case eventlog.Revised, eventlog.UpdateChanged, eventlog.Replaced:
		updateChanges{q}.applyUpdate(j, e)
	case eventlog.BackoffEnded:
		q.applyBackoffEnded(j, e)
	case eventlog.Evicted:
		q.applyEvicted(j, e)
	case eventlog.Scaled:
		q.applyScaled(j, e)
	case eventlog.SurgeChanged:
		updateChanges{q}.changeTaskCount(j, e, e.Submission.Count)
	case eventlog.BecameReady, eventlog.BecameUnready:
		q.applyHealth(j, e)
	case eventlog.ResizeRequested, eventlog.Resized, eventlog.ResizeRefused:
		taskResizes{q}.apply(j, e)
	case eventlog.FlowAdvanced:
		flowChanges{q}.apply(j, e)
	default:
		panic(fmt.Sprintf("queue: event %v", e.Type))
	}
}

// applyHealth folds in what a machine says of an attempt's health.
func (q *Queue) applyHealth(j *job, e eventlog.JobEvent) {
	r := q.liveRecord(j, e)
	if r.Service == nil {
		panic(fmt.Sprintf("queue: %v of %v, which is of no service", e.Type, j.id(q.host).Task(e.Index)))
	}
	r.Service.Check, r.Service.Detail = e.HealthCheck, e.Reason
	serviceTasks{j}.setState(e.Index, r, e.ServiceState, e.Time)
	q.markToResolve(j)
	if e.Force {
		q.restartForHealth(j, e.Index, r, e)
	}
}

// serviceTasks is a job as a service.
type serviceTasks struct{ *job }

// serviceOf is what the revision of a task says of its service; nil: its job is none.
func (j serviceTasks) serviceOf(i int) *jobad.ServiceSpec {
	if own := j.class(i).spec.Service; j.spec.Service != nil && own != nil {
		return own
	}
	return j.spec.Service
}

// setState is the one place where the state of a service's task changes.
func (j serviceTasks) setState(i int, r *eventlog.TaskRecord, to roost.ServiceState, at int64) {
	s := r.Service
	if s == nil || s.State == to {
		return
	}
	x := j.ownExtras()
	x.serviceStates[s.State]--
	x.serviceStates[to]++
	s.Updated.NoteState(s.State, to, at, r.IsEnding())
	s.State, s.Since = to, at
	switch to {
	case roost.NoServiceState: // for how long it was ready decides on its restart
		s.Check, s.Detail = "", ""
	case roost.ServiceReady:
		if s.ReadySince = at; r.Attempt > s.RestartOf {
			s.RestartOf = 0
		}
	default:
		if s.ReadySince != 0 && time.Duration(at-s.ReadySince) >= restart.StableTime {
			s.EarlyEnds = 0
		}
		s.ReadySince = 0
	}
}

// beginAttempt is for a task of a service that gets an attempt.
func (j serviceTasks) beginAttempt(i int, r *eventlog.TaskRecord, at int64) {
	if j.spec.Service == nil {
		return
	}
	if r.Service == nil {
		r.Service = &eventlog.ServiceRecord{}
		j.ownExtras().serviceStates[roost.NoServiceState]++
	}
	r.Service.ReuseClaim = false
	if r.Service.Updated.Stopping = false; r.Service.Updated.Revision == 0 {
		r.Service.Updated.Revision = revisionsOf(j.job).revision()
	}
	j.setState(i, r, roost.ServiceStarting, at)
}

// start is for a task of a service whose processes run.
func (j serviceTasks) start(i int, r *eventlog.TaskRecord, at int64) {
	if s := j.serviceOf(i); s != nil && !s.HasChecks && r.Service.State == roost.ServiceStarting {
		j.setState(i, r, roost.ServiceReady, at)
	}
}

// ServiceStatus is what is told of a service beyond the states of its tasks.
type ServiceStatus struct {
	HasChecks bool
	Wanted    int // tasks that are to run
	ByState   [roost.ServiceLost + 1]int
	Waiting   int // tasks that wait for their restart
	Checks    []HealthCheck
	Autoscale *AutoscaleStatus // nil: its number of tasks is what its user has said
	Sizes     *SizeStatus      // nil: so is the size of its tasks
}

// TaskServiceStatus is what is told of one task of a service.
type TaskServiceStatus struct {
	State  roost.ServiceState
	Since  int64 // when it came into that state, unix nanoseconds
	Check  string
	Detail string
	// how often it was started again, after ends that were no order of Roost; and since
	// when in a row too early
	Restarts, EarlyEnds int
	RestartAt           int64 // when it is started again, unix nanoseconds; 0: it waits for no such time
	Revision            uint32
}

// status tells how a service stands; nil for a job that is none.
func (j serviceTasks) status() *ServiceStatus {
	if j.spec.Service == nil {
		return nil
	}
	s := &ServiceStatus{HasChecks: j.spec.Service.HasChecks, Checks: j.spec.Service.Checks,
		Wanted: len(j.state) - int(j.counts[roost.Completed]+j.counts[roost.Removed]+j.counts[roost.Held])}
	s.Autoscale, s.Sizes = j.autoscaleStatus(), j.sizeStatus()
	for state, n := range j.serviceStates {
		s.ByState[state] = int(n)
	}
	s.Waiting = int(j.waitingRestarts)
	s.ByState[roost.NoServiceState] = s.Wanted
	for state := roost.ServiceStarting; state <= roost.ServiceLost; state++ {
		s.ByState[roost.NoServiceState] -= s.ByState[state]
	}
	return s
}

// taskServiceStatus is what is told of a task; nil where its job is no service.
func taskServiceStatus(r *eventlog.TaskRecord) *TaskServiceStatus {
	if r == nil || r.Service == nil {
		return nil
	}
	s := r.Service
	t := &TaskServiceStatus{State: s.State, Since: s.Since, Check: s.Check, Detail: s.Detail, Restarts: s.Restarts,
		EarlyEnds: s.EarlyEnds, Revision: max(s.Updated.Revision, firstRevision)}
	if s.Waits {
		t.RestartAt = s.NotBefore
	}
	return t
}

// restore counts the states of a restored job's tasks.
func (j serviceTasks) restore() {
	if j.spec.Service == nil {
		return
	}
	for i := range j.state {
		if r := j.records.Own(i); r != nil && r.Service != nil {
			j.ownExtras().serviceStates[r.Service.State]++
		}
	}
}

// checkService panics when the states of a service's tasks contradict their attempts.
func (q *jobTable) checkService(j *job) {
	var states [roost.ServiceLost + 1]int32
	waiting := int32(0)
	for i := range j.state {
		r := j.records.Own(i)
		if r == nil || r.Service == nil {
			if r != nil && r.Live && j.spec.Service != nil {
				panic(fmt.Sprintf("queue: %v is of a service, and has no state of one", j.id(q.host).Task(i)))
			}
			continue
		}
		s := r.Service
		states[s.State]++
		waiting += boolToInt(s.Waits)
		checkRestart(j, i, r)
		if (s.State != roost.NoServiceState) != r.Live ||
			r.Live && (s.State == roost.ServiceReady) != (s.ReadySince != 0) {
			panic(fmt.Sprintf("queue: %v is %v since %d, ready since %d, and its attempt is live: %v",
				j.id(q.host).Task(i), s.State, s.Since, s.ReadySince, r.Live))
		}
	}
	if states != j.serviceStates || waiting != j.waitingRestarts {
		panic(fmt.Sprintf("queue: tasks of service %d are in the states %v, %d wait, and %v and %d are counted",
			j.seq, states, waiting, j.serviceStates, j.waitingRestarts))
	}
}

// healthReason says how the live attempt of a task is.
func healthReason(s *eventlog.ServiceRecord) string {
	if s.Check == "" {
		return strings.TrimSuffix(fmt.Sprintf("%v: %s", s.State, s.Detail), ": ")
	}
	return strings.TrimSuffix(fmt.Sprintf("%v: check %s: %s", s.State, s.Check, s.Detail), ": ")
}

// ServiceTotals is how many tasks all services have, by state, and how many updates of
// them go on.
type ServiceTotals struct {
	Tasks   [roost.ServiceLost + 1]int // the first: those without an attempt
	Backoff int                        // of the first: those that wait for their restart
	Updates [update.UndoPaused + 1]int // by state
}

// ServiceTotals adds up all services. It looks at each service, and at no task.
func (q *serviceUpdates) ServiceTotals() (sum ServiceTotals) {
	for seq := range q.services {
		j := q.jobs[seq]
		s := serviceTasks{j}.status()
		if s == nil || j.isFinal() {
			continue
		}
		for state, n := range s.ByState {
			sum.Tasks[state] += n
		}
		if sum.Backoff += s.Waiting; j.update != nil && j.update.State.IsActive() {
			sum.Updates[j.update.State]++
		}
	}
	return sum
}

// RestartCause is why a task of a service is started again.
type RestartCause uint8

// The causes. The first three are planned.
const (
	RestartForUpdate RestartCause = iota
	RestartForDrain
	RestartForCheck
	RestartAfterExit
	RestartAfterLimit
	RestartAfterLaunch
	RestartAfterPreemption
	RestartAfterMachine
	RestartAfterLoss
	RestartAfterOther
)

// RestartCause returns why the attempt that an event ends is followed by another. It is
// false if it is of no service, or nothing is to follow. The event was not applied yet.
func (q *Queue) RestartCause(e *eventlog.JobEvent) (c RestartCause, ok bool) {
	j := q.jobs[e.Job]
	if j == nil || j.spec.Service == nil {
		return c, false
	}
	r := j.records.Own(e.Index)
	if r == nil || !r.Live || r.Service == nil || r.RemoveWanted || r.HoldWanted {
		return c, false
	}
	switch {
	case r.Service.Updated.Stopping:
		return RestartForUpdate, true
	case r.IsEnding() && q.evicted[q.attemptOf(j, e.Index)]:
		return RestartForDrain, true
	case r.IsEnding():
		return RestartForCheck, true
	case e.Exit == nil:
		return RestartAfterLoss, true
	}
	switch e.Exit.Cause {
	case eventlog.CauseExited:
		return RestartAfterExit, true
	case eventlog.CauseWalltime, eventlog.CauseMemory, eventlog.CauseGPUMemory, eventlog.CauseDisk,
		eventlog.CauseCPUTime, eventlog.CauseVirtualMemory:
		return RestartAfterLimit, true
	case eventlog.CauseLaunch, eventlog.CausePrologue:
		return RestartAfterLaunch, true
	case eventlog.CausePreemption:
		return RestartAfterPreemption, true
	case eventlog.CauseMachine:
		return RestartAfterMachine, true
	case eventlog.CauseLease:
		return RestartAfterLoss, true
	default:
		return RestartAfterOther, true
	}
}

// EndedUpdate returns how the update of a service ends by an event that was not applied
// yet. It is false if none does.
func (q *serviceUpdates) EndedUpdate(e *eventlog.JobEvent) (s update.State, ended bool) {
	j := q.jobs[e.Job]
	if j == nil || e.Update == nil || e.Update.State.IsActive() || e.Update.State == update.Closed {
		return s, false
	}
	return e.Update.State, j.update == nil || j.update.State.IsActive()
}
