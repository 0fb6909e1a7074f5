package audit

import (
	"slices"
	"time"

	"github.com/roost-batch/roost"
)

// The guarantees of services, beside those of all tasks.
const (
	BudgetGuarantee     = OwnerGuarantee + 1 + iota // S1
	RevisionGuarantee                               // S4
	BackoffGuarantee                                // S13
	UpdateGuarantee                                 // S14
	SurgeGuarantee                                  // S2
	SizeGuarantee                                   // S9
	ScaleGuarantee                                  // S15
	DisruptionGuarantee                             // S3
)

// ServiceTerms is what the submission of a service says.
type ServiceTerms struct {
	MaxDown      int           // tasks that planned causes may have down at once
	Surge        int           // the most tasks beyond its own while it is updated
	Restarts     int           // the most restarts of a task on one claim
	BackoffFirst time.Duration // the wait before the first restart; doubled for each next
	BackoffMax   time.Duration
	Progress     time.Duration // an update in which no task becomes ready for so long has failed
	Disruptions  int           // running tasks that one update may stop; 0: any number
	Environment  string        // of the first revision
	// of a service whose number of tasks follows its load; 0: it has as many as its user
	// says
	MinTasks, MaxTasks int
	// of each task of a service whose size follows its use; 0: its user says it
	MinMemory, MaxMemory roost.Bytes
	// a next attempt may begin while one still lives on a machine that is silent
	Overlap bool
}

// auditedService is the auditor's state of a service.
type auditedService struct {
	ServiceTerms
	moving      bool
	movesSince  time.Duration
	late        bool // an update that does not end is recorded
	recordLost  bool // its updates may not be what they were recorded to be
	environment string
	count       int // tasks that its user or its load asks for; they are the first ones
	extra       int // tasks beyond them
	stored      int // tasks that it was submitted with
	// to which its tasks are to go; it is lower than before while an update is undone
	revision  uint32
	isUndo    bool
	disrupted int // running tasks that its present update has stopped
	revisions map[uint32]knownRevision
}

// auditedRestarts is what the auditor knows of a service's task.
type auditedRestarts struct {
	ready     bool
	readyAt   time.Duration       // since when it is
	planned   bool                // it was stopped by plan, and was not ready since
	stopping  roost.AttemptNumber // the attempt that was to be stopped then
	over      roost.AttemptNumber // the attempt that is recorded to have ended
	earlyEnds int                 // attempts in a row that ended by themselves
	endedAt   time.Duration
	waits     bool // the last attempt ended by itself at endedAt
	node      string
	claim     uint64
	onClaim   int // restarts on that claim
	// when the last attempt was recorded, by the schedd's clock, by which restarts have
	// their window
	recordedAt time.Duration
}

// backoff is the least wait before a restart after so many early ends. A quarter of the
// whole may be taken off.
func (s *ServiceTerms) backoff(ends int) time.Duration {
	full := s.BackoffFirst
	for ; ends > 1 && full < s.BackoffMax; ends-- {
		full *= 2
	}
	return min(full, s.BackoffMax) * 3 / 4
}

// checkService checks S1 and S4, and follows what is recorded of services.
func (a *Auditor) checkService(s *Event) {
	j := a.jobs[s.Job]
	if s.Type == ServiceStored {
		j.service = &auditedService{ServiceTerms: *s.Service, environment: s.Service.Environment, count: len(j.tasks),
			stored: len(j.tasks)}
		return
	}
	if j == nil || j.service == nil {
		return
	}
	j.resources = maxResources(j.resources, s.Resources) // UpdateMoves: it may wait for that much
	if j.service.recordLost {
		j.forgetRestarts(s)
		return
	}
	switch s.Type {
	case CountSet:
		a.checkCount(j, s)
	case RevisionSet:
		a.checkRevisionAd(j, s)
	case UpdateMoves:
		j.service.moving, j.service.movesSince, j.service.environment = true, s.At, s.Detail
		j.service.goTo(s.Revision)
		a.checkSizeBounds(j, s)
	case UpdateWaits:
		j.service.moving = false
	case UpdateDone:
		j.service.moving = false
		a.checkRevisions(j, s)
	case PlannedStop:
		a.checkDisruptions(j, s)
		isDown := j.tasks[s.Index].service.planned // and is charged for
		j.tasks[s.Index].service = auditedRestarts{planned: true, stopping: j.tasks[s.Index].assigned}
		if !isDown {
			a.checkBudget(j, s)
		}
	case Replaced:
		a.checkDisruptions(j, s)
		j.tasks[s.Index].service = auditedRestarts{planned: j.tasks[s.Index].service.planned,
			stopping: j.tasks[s.Index].assigned}
	case StopRequested:
		j.stopRequested(s)
	case TaskFailed:
		j.tasks[s.Index].service.planned = false
	case TaskReady:
		t := &j.tasks[s.Index].service
		if t.planned = false; !t.ready {
			t.ready, t.readyAt = true, s.At
		}
	case TaskUnready:
		t := &j.tasks[s.Index].service
		t.ready, t.over = false, max(t.over, s.Attempt)
	case EndedByItself:
		t := &j.tasks[s.Index].service
		if s.Attempt == t.stopping { // it was quicker than the order
			return
		}
		t.earlyEnds, t.endedAt, t.waits = t.earlyEnds+1, s.Until, true
		if s.Until-t.recordedAt >= roost.DefaultRestartWindow { // it was no early one, by that clock
			t.earlyEnds, t.waits = 0, false
		}
		t.planned = false // it failed
	}
}

// checkBudget checks S1: no more tasks of a service are down by plan than may be. Those
// beyond its own that are ready stand in for others.
func (a *Auditor) checkBudget(j *auditedJob, s *Event) {
	down, most := 0, j.service.MaxDown
	for i := range j.tasks {
		switch t := &j.tasks[i]; {
		case !t.isUnfinished() || t.held || !j.wants(i):
		case i >= j.service.count && t.service.ready:
			most++
		case i < j.service.count && t.service.planned:
			down++
		}
	}
	if down > most {
		a.addViolation(BudgetGuarantee, serviceHistory(s.Job), "%d tasks of %v are down by plan, and %d may be", down,
			s.Job, most)
	}
}

// wants reports whether a task of a job is one that is to run. Where records are lost,
// that is certain only of the first ones.
func (j *auditedJob) wants(i int) bool {
	switch s := j.service; {
	case s == nil:
		return true
	case s.recordLost && s.MaxTasks > 0:
		return i < s.MinTasks
	case s.recordLost:
		return i < s.stored
	default:
		return i < s.count+s.extra
	}
}

// stopRequested notes that what runs of a service is to end because its user asks for
// that. An update that gives these tasks another revision then stops nothing, and what is
// down is not down by plan.
func (j *auditedJob) stopRequested(s *Event) {
	for i := range j.tasks {
		if s.Index == AllTasks || s.Index == i {
			j.tasks[i].service.stopping, j.tasks[i].service.planned = j.tasks[i].assigned, false
		}
	}
}

// goTo notes the revision to which the tasks of a service are to go. Each update goes to
// a higher one than all before, and back to a lower one when it is undone.
func (s *auditedService) goTo(revision uint32) {
	if revision > s.revision {
		s.isUndo, s.disrupted = false, 0
	}
	s.isUndo = s.isUndo || revision < s.revision
	s.revision = revision
}

// checkDisruptions checks S3 when a task is to become another revision. An update stops
// no more running tasks than it may; to undo it, any number may be stopped. Tasks beyond
// those of the service, and those whose machines are silent, are no disruption.
func (a *Auditor) checkDisruptions(j *auditedJob, s *Event) {
	t, most := &j.tasks[s.Index], j.service.Disruptions
	l := a.liveProcess(t)
	if s.Detail != OfUpdate || most == 0 || j.service.isUndo || s.Index >= j.service.count || l == nil ||
		l.attempt != t.assigned || l.attempt == t.service.stopping || l.attempt == t.service.over {
		return
	}
	if j.service.disrupted++; j.service.disrupted > most {
		a.addViolation(DisruptionGuarantee, serviceHistory(s.Job), "the update of %v to revision %d stops attempt %d "+
			"of task %d, the %d. that runs, and %d may be", s.Job, j.service.revision, l.attempt, s.Index,
			j.service.disrupted, most)
	}
}

// forgetRestarts follows a service whose records are lost in part. Of its restarts only
// those count that come after the last planned stop of their task.
func (j *auditedJob) forgetRestarts(s *Event) {
	switch s.Type {
	case CountSet: // some tasks may have gone, and come back
		j.restartAnew()
	case PlannedStop, Replaced:
		if s.Index < len(j.tasks) {
			j.tasks[s.Index].service = auditedRestarts{stopping: j.tasks[s.Index].assigned}
		}
	}
}

// restartAnew forgets how often and when the tasks of a job were started again.
func (j *auditedJob) restartAnew() {
	for i := range j.tasks {
		j.tasks[i].service = auditedRestarts{}
	}
}

// checkCount checks S2 when a service is to have another number of tasks.
func (a *Auditor) checkCount(j *auditedJob, s *Event) {
	j.service.count, j.service.extra = s.Tasks, s.Extra
	for len(j.tasks) < s.Tasks+s.Extra {
		j.tasks = append(j.tasks, auditedTask{})
	}
	for i := range j.tasks {
		if !j.wants(i) { // when it is wanted again it begins anew
			j.tasks[i].service = auditedRestarts{stopping: j.tasks[i].assigned}
		}
	}
	if x := j.service; x.MaxTasks > 0 && (s.Tasks < x.MinTasks || s.Tasks > x.MaxTasks) {
		a.addViolation(ScaleGuarantee, serviceHistory(s.Job), "%v is to have %d tasks, and from %d to %d may be", s.Job,
			s.Tasks, x.MinTasks, x.MaxTasks)
	}
	if s.Extra > j.service.Surge {
		a.addViolation(SurgeGuarantee, serviceHistory(s.Job), "%d tasks of %v are to run beyond %d, and %d may be",
			s.Extra, s.Job, s.Tasks, j.service.Surge)
	}
}

// checkSurplus checks S2 when no fault is in the way: tasks that are no longer wanted
// end.
func (a *Auditor) checkSurplus(at time.Duration) {
	for _, j := range a.sortedJobs() {
		for i := range j.tasks {
			t := &j.tasks[i]
			l := a.liveProcess(t)
			if j.wants(i) || l == nil || t.surplusReported || j.service.recordLost {
				t.surplusSince = at
				continue
			}
			if t.surplusSince < a.faultsEnded {
				t.surplusSince = at
			}
			if at-t.surplusSince > a.rules.StartWait {
				t.surplusReported = true
				a.addViolation(SurgeGuarantee, serviceHistory(j.id), "%v has %d tasks and %d beyond them, and attempt "+
					"%d of task %d lives on %s since %s", j.id, j.service.count, j.service.extra, l.attempt, i, l.node,
					ClockText(t.surplusSince))
			}
		}
	}
}

// checkRevisions checks S4: after an update every task is what it was to become.
func (a *Auditor) checkRevisions(j *auditedJob, s *Event) {
	for i := range j.tasks {
		t := &j.tasks[i]
		l := a.liveProcess(t)
		if l == nil || t.held || !j.wants(i) || l.attempt != t.assigned || l.attempt == t.service.stopping {
			continue
		}
		if l.environment != s.Detail {
			a.addViolation(RevisionGuarantee, serviceHistory(s.Job), "the update of %v has ended, and attempt %d of "+
				"its task %d runs on %s with %s, not %s", s.Job, l.attempt, i, l.node, l.environment, s.Detail)
			return
		}
		has := a.machine(l.node).attempts[roost.AttemptID{Task: j.id.Task(i), Attempt: l.attempt}].resources
		if s.Resources.CPU != 0 && !sameSize(has, s.Resources) {
			a.addViolation(RevisionGuarantee, serviceHistory(s.Job), "the update of %v has ended, and attempt %d of "+
				"its task %d has %s on %s, not %s", s.Job, l.attempt, i, resourceText(has), l.node,
				resourceText(s.Resources))
			return
		}
	}
}

// checkRestart checks the waits of S13 when a next attempt is recorded.
func (a *Auditor) checkRestart(j *auditedJob, t *auditedTask, s *Event) {
	if j.service == nil {
		return
	}
	if gap := s.Until - t.service.recordedAt; gap < 0 || gap >= roost.DefaultRestartWindow {
		t.service.onClaim = -1 // that clock was set: the next attempt is the first in another window
	}
	t.service.recordedAt = s.Until
	if !t.service.waits {
		return
	}
	t.service.waits = false
	// a wait that a clock set back would lengthen ends at once
	waited, least := s.Until-t.service.endedAt, j.service.backoff(t.service.earlyEnds)
	if waited >= 0 && waited < least {
		a.addViolation(BackoffGuarantee, taskHistory(s.taskID()), "attempt %d of %v begins %s after the last one, "+
			"which was the %d. in a row to end by itself, and has to wait %s", s.Attempt, s.taskID(), ClockText(waited),
			t.service.earlyEnds, ClockText(least))
	}
}

// countRestart checks the number of restarts on a claim of S13.
func (a *Auditor) countRestart(j *auditedJob, t *auditedTask, s *Event) {
	last := a.machine(s.Node).lastTasks
	before := last[s.Claim]
	last[s.Claim] = s.taskID()
	if j.service == nil {
		return
	}
	x := &t.service
	if x.node != s.Node || x.claim != s.Claim || before != s.taskID() { // another task had the claim in between
		x.node, x.claim, x.onClaim = s.Node, s.Claim, 0
		return
	}
	if x.onClaim++; x.onClaim > j.service.Restarts {
		a.addViolation(BackoffGuarantee, taskHistory(s.taskID()), "attempt %d of %v is the %d. restart on claim %d of "+
			"%s, and %d may be", s.Attempt, s.taskID(), x.onClaim, s.Claim, s.Node, j.service.Restarts)
	}
}

// checkUpdates checks S14: when no fault is in the way, every update ends. Each task that
// becomes ready gives it its time again.
func (a *Auditor) checkUpdates(at time.Duration) {
	for _, j := range a.sortedJobs() {
		s := j.service
		if s == nil || !s.moving || s.late || !slices.ContainsFunc(j.tasks, func(t auditedTask) bool {
			return t.isUnfinished() && !t.toBeRemoved
		}) {
			continue
		}
		most := time.Duration(len(j.tasks)+1)*s.Progress + a.rules.StartWait
		if since := max(s.movesSince, a.faultsEnded); at-since > most {
			s.late = true
			a.addViolation(UpdateGuarantee, serviceHistory(j.id), "the update of %v goes on since %s, and should have "+
				"come to an end within %v", j.id, ClockText(s.movesSince), most)
		}
	}
}

// serviceHistory selects the events about a service and its tasks.
func serviceHistory(id roost.JobID) func(*Event) bool {
	return func(s *Event) bool { return s.Job == id && s.Type != Recovered }
}
