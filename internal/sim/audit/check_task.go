package audit

import (
	"slices"
	"time"

	"github.com/roost-batch/roost"
)

// auditedTask is the auditor's state of a task.
type auditedTask struct {
	assigned        roost.AttemptNumber // the latest attempt that the schedd recorded
	maxKnownAttempt roost.AttemptNumber // the latest attempt when a hold or removal was acknowledged
	held            bool
	toBeRemoved     bool // a removal was acknowledged
	removed         bool
	completed       roost.AttemptNumber // the attempt that completed the task; 0: none
	processes       []runningProcess
	ended           map[roost.AttemptNumber]int32 // exit codes of ended attempts
	endedAt         map[roost.AttemptNumber]time.Duration
	nodes           map[roost.AttemptNumber]string // where they ended
	nameMissed      bool                           // a violation for its name is recorded
	stored          map[roost.AttemptNumber]bool
	freed           time.Duration  // when the last attempt ended
	failures        map[string]int // attempts in a row that failed, by machine
	service         auditedRestarts
	surplusSince    time.Duration // since when it lives although nobody wants it, or when it was last looked at
	surplusReported bool
}

// runningProcess is an attempt with a live process.
type runningProcess struct {
	attempt     roost.AttemptNumber
	node        string
	environment string
	duringSleep roost.AttemptNumber // the attempt that began elsewhere while this machine slept
}

// noteFailure counts the attempts in a row that failed on a machine, which the task may
// avoid then.
func (t *auditedTask) noteFailure(s *Event) {
	if t.failures == nil {
		t.failures = map[string]int{}
	}
	if t.failures[s.Node]++; s.Code == 0 {
		delete(t.failures, s.Node)
	}
}

// isUnfinished reports whether the task has neither completed nor been removed.
func (t *auditedTask) isUnfinished() bool { return t.completed == 0 && !t.removed }

// checkTask checks P3, P4, P8 and P11.
func (a *Auditor) checkTask(s *Event) {
	j := a.jobs[s.Job]
	if j == nil { // neither shown to a user nor on a disk: it may be forgotten
		j = &auditedJob{id: s.Job}
		a.jobs[s.Job] = j
	}
	if s.Index == AllTasks {
		for i := range j.tasks {
			one := *s
			one.Index = i
			a.checkAttempt(j, &one)
		}
		return
	}
	for len(j.tasks) <= s.Index {
		j.tasks = append(j.tasks, auditedTask{})
	}
	a.checkAttempt(j, s)
}

func (a *Auditor) checkAttempt(j *auditedJob, s *Event) {
	t := &j.tasks[s.Index]
	switch s.Type {
	case Assigned:
		a.checkAssigned(t, s)
		a.checkRestart(j, t, s)
	case Began:
		a.checkBegan(j, t, s)
		a.countRestart(j, t, s)
	case Ended:
		a.checkEnded(j, t, s)
	case OutputStored, OutputLost:
		if t.stored == nil {
			t.stored = map[roost.AttemptNumber]bool{}
		}
		t.stored[s.Attempt] = s.Type == OutputStored
		if s.Type == OutputStored && s.Detail != "" {
			a.addViolation(11, taskHistory(s.taskID()),
				"with the output of attempt %d of %v %s is stored, which nobody has asked for", s.Attempt,
				s.taskID(), s.Detail)
		}
	case Completed:
		a.checkCompleted(t, s)
	case Removed:
		t.removed = true
	case Reopened:
		t.removed, t.toBeRemoved, t.held, t.completed = false, false, false, 0
	case RecordLost: // the task may complete again, and need not remember a hold or removal
		t.removed, t.toBeRemoved, t.completed, t.service = false, false, 0, auditedRestarts{}
		j.disturbSchedule(s)
		j.disturbFlow()
		if j.service != nil {
			j.service.recordLost, j.service.moving = true, false
		}
	case HeldByUser:
		t.held, t.maxKnownAttempt, t.toBeRemoved = true, t.assigned, t.toBeRemoved || s.Detail == Removal
		t.service = auditedRestarts{stopping: t.assigned}
		j.disturbSchedule(s)
		j.disturbFlow()
	case Released:
		j.disturbSchedule(s)
		t.held, t.service = false, auditedRestarts{stopping: t.service.stopping}
	}
}

// checkAssigned checks a newly recorded attempt. A hold is acknowledged when it is on the
// schedd's disk, possibly before a machine knows of it. An attempt that was recorded
// before the acknowledgement may still begin, and is then stopped. A later one may not be
// recorded.
func (a *Auditor) checkAssigned(t *auditedTask, s *Event) {
	switch {
	case s.Attempt <= t.assigned:
		a.addViolation(4, taskHistory(s.taskID()),
			"attempt %d of %v is recorded after attempt %d, and numbers only rise", s.Attempt, s.taskID(), t.assigned)
	case !t.isUnfinished():
		a.addViolation(3, taskHistory(s.taskID()), "attempt %d of %v is recorded, which was over", s.Attempt,
			s.taskID())
	case t.held:
		a.addViolation(8, taskHistory(s.taskID()),
			"attempt %d of %v is recorded after a user was told that none starts", s.Attempt, s.taskID())
	}
	t.assigned = max(t.assigned, s.Attempt)
}

func (a *Auditor) checkBegan(j *auditedJob, t *auditedTask, s *Event) {
	switch {
	case t.completed != 0:
		a.addViolation(3, taskHistory(s.taskID()), "attempt %d of %v begins after attempt %d was recorded as its last",
			s.Attempt, s.taskID(), t.completed)
	case t.held && s.Attempt > t.maxKnownAttempt:
		a.addViolation(8, taskHistory(s.taskID()), "attempt %d of %v begins after a user was told that none starts",
			s.Attempt, s.taskID())
	}
	for i := range t.processes {
		other := &t.processes[i]
		if a.machine(other.node).asleep {
			other.duringSleep = s.Attempt
			continue
		}
		if j.mayOverlap() {
			continue
		}
		a.addViolation(4, taskHistory(s.taskID()), "attempt %d of %v begins on %s, and attempt %d lives on %s",
			s.Attempt, s.taskID(), s.Node, other.attempt, other.node)
	}
	t.processes = append(t.processes, runningProcess{attempt: s.Attempt, node: s.Node, environment: s.Detail})
	a.machine(s.Node).addAttempt(a, s)
}

func (a *Auditor) checkEnded(j *auditedJob, t *auditedTask, s *Event) {
	if t.ended == nil {
		t.ended, t.endedAt = map[roost.AttemptNumber]int32{}, map[roost.AttemptNumber]time.Duration{}
		t.nodes = map[roost.AttemptNumber]string{}
	}
	t.ended[s.Attempt], t.endedAt[s.Attempt], t.nodes[s.Attempt], t.freed = s.Code, s.At, s.Node, s.At
	t.noteFailure(s)
	m := a.machine(s.Node)
	m.removeAttempt(s)
	t.processes = slices.DeleteFunc(t.processes, func(l runningProcess) bool {
		if l.attempt != s.Attempt || l.node != s.Node {
			return false
		}
		if l.duringSleep != 0 && !j.mayOverlap() && !m.asleep && s.At > m.wokeAt+a.rules.WakeTime {
			a.addViolation(4, taskHistory(s.taskID()),
				"attempt %d of %v lived on %s until %s after it woke, and attempt %d had begun", l.attempt, s.taskID(),
				s.Node, ClockText(s.At-m.wokeAt), l.duringSleep)
		}
		return true
	})
}

func (a *Auditor) checkCompleted(t *auditedTask, s *Event) {
	code, ended := t.ended[s.Attempt]
	switch {
	case t.completed != 0:
		a.addViolation(3, taskHistory(s.taskID()),
			"attempt %d of %v is recorded as its last, and attempt %d was before", s.Attempt, s.taskID(), t.completed)
	case s.Attempt != t.assigned:
		a.addViolation(3, taskHistory(s.taskID()), "attempt %d of %v is recorded as its last, and attempt %d is",
			s.Attempt, s.taskID(), t.assigned)
	case a.liveProcess(t) != nil:
		other := a.liveProcess(t)
		a.addViolation(3, taskHistory(s.taskID()),
			"attempt %d of %v is recorded as its last while attempt %d lives on %s", s.Attempt, s.taskID(),
			other.attempt, other.node)
	case !ended:
		a.addViolation(3, taskHistory(s.taskID()), "attempt %d of %v is recorded as its last, and never ran", s.Attempt,
			s.taskID())
	case code != s.Code:
		a.addViolation(3, taskHistory(s.taskID()), "attempt %d of %v is recorded with code %d, and ended with %d",
			s.Attempt, s.taskID(), s.Code, code)
	}
	if !t.stored[s.Attempt] {
		a.addViolation(11, taskHistory(s.taskID()),
			"attempt %d of %v is recorded as its last, and its output is not at the submit side", s.Attempt, s.taskID())
	}
	t.completed = s.Attempt
}

// liveProcess returns an attempt of the task that lives on an awake machine, or nil. It
// leaves out processes that slept while another attempt began: those were checked then.
func (a *Auditor) liveProcess(t *auditedTask) *runningProcess {
	for i := range t.processes {
		if l := &t.processes[i]; l.duringSleep == 0 && !a.machine(l.node).asleep {
			return l
		}
	}
	return nil
}
