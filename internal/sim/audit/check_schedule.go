package audit

import (
	"time"

	"github.com/roost-batch/roost"
)

// ScheduleGuarantee is S10.
const ScheduleGuarantee = DisruptionGuarantee + 1

// ScheduleTerms is what the submission of a job with a schedule says.
type ScheduleTerms struct {
	Every time.Duration // from one instant of its schedule to the next
	// no instant may go without a run while it is not held. Missed ones are made, they
	// may overlap, and no clock is set
	Complete bool
	// nobody sets a clock, so that instants are decided when they are due
	Steady bool
}

// auditedSchedule is the auditor's state of a job with a schedule.
type auditedSchedule struct {
	ScheduleTerms
	runs      map[int64]roost.JobID // by instant, unix seconds
	last      int64                 // the last instant that was decided; 0: none
	decided   time.Duration         // when one was, or when the job was released
	lateKnown bool
}

// checkRun checks S10 when the run of an instant is on disk: there is none before it.
func (a *Auditor) checkRun(s *Event) {
	by := a.jobs[s.Of]
	if by == nil || by.schedule == nil {
		a.addViolation(ScheduleGuarantee, jobHistory(s.Of, s.Job), "%v is a run of %v, which has no schedule", s.Job,
			s.Of)
		return
	}
	j := &auditedJob{id: s.Job, key: s.Key, resources: s.Resources, tasks: make([]auditedTask, max(s.Tasks, 1)),
		isRun: true, shown: true}
	if a.jobs[s.Job] == nil {
		a.jobs[s.Job] = j
	}
	if first, ok := by.schedule.runs[s.Instant]; ok && first != s.Job {
		a.addViolation(ScheduleGuarantee, scheduleHistory(s.Of), "%v and %v are runs of %v for the instant %s", first,
			s.Job, s.Of, instantText(s.Instant))
	}
	by.schedule.runs[s.Instant] = s.Job
}

// checkDecided checks S10 when instants of a schedule are decided.
func (a *Auditor) checkDecided(s *Event) {
	j := a.jobs[s.Job]
	if j == nil || j.schedule == nil {
		return
	}
	c := j.schedule
	every := int64(c.Every / time.Second)
	switch run := c.runs[s.Instant]; {
	case s.Type == RunDecided && run != s.Of:
		a.addViolation(ScheduleGuarantee, scheduleHistory(s.Job), "the instant %s of %v is decided with the run %v, "+
			"which is not in the log", instantText(s.Instant), s.Job, s.Of)
	case s.Type == RunSkipped && c.Complete:
		a.addViolation(ScheduleGuarantee, scheduleHistory(s.Job), "%v gets no run for the instant %s: %s", s.Job,
			instantText(s.Instant), s.Detail)
	case s.Type == RunDecided && c.Complete && c.last != 0 && s.Instant > c.last+every:
		a.addViolation(ScheduleGuarantee, scheduleHistory(s.Job), "%v gets a run for the instant %s, and the one "+
			"before was for %s", s.Job, instantText(s.Instant), instantText(c.last))
	}
	c.last, c.decided = s.Instant, s.At
}

// disturbSchedule is that instants may go without a run from now on, or that the schedule
// begins anew.
func (j *auditedJob) disturbSchedule(s *Event) {
	if c := j.schedule; c != nil {
		c.Complete, c.last, c.decided = false, 0, s.At
	}
}

// checkSchedules checks S10 when no fault is in the way: instants are decided when they
// are due.
func (a *Auditor) checkSchedules(at time.Duration) {
	for _, j := range a.sortedJobs() {
		c := j.schedule
		if c == nil || !c.Steady || c.lateKnown || j.tasks[0].held || !j.tasks[0].isUnfinished() {
			continue
		}
		if most := c.Every + a.rules.StartWait; at-max(c.decided, a.faultsEnded) > most {
			c.lateKnown = true
			a.addViolation(ScheduleGuarantee, scheduleHistory(j.id), "no instant of %v was decided for %v", j.id, most)
		}
	}
}

// scheduleHistory selects the events about a job with a schedule, and about its runs as a
// whole.
func scheduleHistory(id roost.JobID) func(*Event) bool {
	return func(s *Event) bool {
		return s.Job == id && s.Type != Recovered || s.Of == id
	}
}

func instantText(unix int64) string { return time.Unix(unix, 0).UTC().Format(time.RFC3339) }
