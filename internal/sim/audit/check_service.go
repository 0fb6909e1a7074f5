package audit

import (
	"slices"
	"time"

	"github.com/roost-batch/roost"
)

// The guarantees of services, beside those of all tasks.
const (
	BudgetGuarantee   = OwnerGuarantee + 1 + iota // S1
	RevisionGuarantee                             // S4
	BackoffGuarantee                              // S13
	UpdateGuarantee                               // S14
)

// ServiceTerms is what the submission of a service says.
type ServiceTerms struct {
	MaxDown      int           // tasks that planned causes may have down at once
	Restarts     int           // the most restarts of a task on one claim
	BackoffFirst time.Duration // the wait before the first restart; doubled for each next
	BackoffMax   time.Duration
	Progress     time.Duration // an update in which no task becomes ready for so long has failed
	Environment  string        // of the first revision
}

// auditedService is the auditor's state of a service.
type auditedService struct {
	ServiceTerms
	moving      bool
	movesSince  time.Duration
	late        bool // an update that does not end is recorded
	recordLost  bool // its updates may not be what they were recorded to be
	environment string
}

// auditedRestarts is what the auditor knows of a service's task.
type auditedRestarts struct {
	planned   bool                // it was stopped by plan, and was not ready since
	stopping  roost.AttemptNumber // the attempt that was to be stopped then
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
		j.service = &auditedService{ServiceTerms: *s.Service, environment: s.Service.Environment}
		return
	}
	if j == nil || j.service == nil || j.service.recordLost {
		return
	}
	switch s.Type {
	case UpdateMoves:
		j.service.moving, j.service.movesSince, j.service.environment = true, s.At, s.Detail
	case UpdateWaits:
		j.service.moving = false
	case UpdateDone:
		j.service.moving = false
		a.checkRevisions(j, s)
	case PlannedStop:
		j.tasks[s.Index].service = auditedRestarts{planned: true, stopping: j.tasks[s.Index].assigned}
		a.checkBudget(j, s)
	case Replaced:
		j.tasks[s.Index].service = auditedRestarts{planned: j.tasks[s.Index].service.planned,
			stopping: j.tasks[s.Index].assigned}
	case TaskFailed, TaskReady:
		j.tasks[s.Index].service.planned = false
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

// checkBudget checks S1: no more tasks of a service are down by plan than may be.
func (a *Auditor) checkBudget(j *auditedJob, s *Event) {
	down := 0
	for i := range j.tasks {
		if t := &j.tasks[i]; t.service.planned && t.isUnfinished() && !t.held {
			down++
		}
	}
	if down > j.service.MaxDown {
		a.addViolation(BudgetGuarantee, serviceHistory(s.Job), "%d tasks of %v are down by plan, and %d may be", down,
			s.Job, j.service.MaxDown)
	}
}

// checkRevisions checks S4: after an update every task is what it was to become.
func (a *Auditor) checkRevisions(j *auditedJob, s *Event) {
	for i := range j.tasks {
		t := &j.tasks[i]
		l := a.liveProcess(t)
		if l == nil || t.held || l.attempt != t.assigned || l.attempt == t.service.stopping {
			continue
		}
		if l.environment != s.Detail {
			a.addViolation(RevisionGuarantee, serviceHistory(s.Job), "the update of %v has ended, and attempt %d of "+
				"its task %d runs on %s with %s, not %s", s.Job, l.attempt, i, l.node, l.environment, s.Detail)
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
