package audit

import (
	"slices"

	"github.com/roost-batch/roost"
)

// auditedJob is the auditor's state of a job.
type auditedJob struct {
	id        roost.JobID
	key       string
	shown     bool
	archived  bool
	resources roost.Resources // resources of each task
	tasks     []auditedTask
	service   *auditedService  // nil: its tasks end by themselves
	inside    bool             // its tasks run inside allocs
	isRun     bool             // it was made by a schedule, and may wait for another run
	schedule  *auditedSchedule // nil: it has none
	flow      *auditedFlow     // nil: it is none
}

// checkJob checks P1 and P2.
func (a *Auditor) checkJob(s *Event) {
	switch s.Type {
	case Recovered:
		a.checkRecovered(s)
		return
	case Archived:
		a.checkArchived(s)
		return
	}
	if s.Type == SubmissionStored && !s.Of.IsZero() {
		a.checkRun(s)
		return
	}
	if first, ok := a.keys[s.Key]; ok && first != s.Job {
		a.addViolation(2, jobHistory(first, s.Job), "the key %s has made %v and %v", s.Key, first, s.Job)
	} else {
		a.keys[s.Key] = s.Job
	}
	j := a.jobs[s.Job]
	if j == nil {
		j = &auditedJob{id: s.Job, key: s.Key, resources: s.Resources, tasks: make([]auditedTask, max(s.Tasks, 1))}
		a.jobs[s.Job] = j
	} else if j.key != s.Key {
		a.addViolation(1, jobHistory(s.Job), "%v was the job of the key %s, and is that of the key %s now", s.Job,
			j.key, s.Key)
	}
	j.shown = j.shown || s.Type == IDShown
	j.inside = j.inside || s.Inside != 0
	if s.Flow != nil && j.flow == nil {
		j.flow = &auditedFlow{FlowTerms: s.Flow, jobs: map[flowPart]roost.JobID{},
			outcomes: make([]nodeOutcome, len(s.Flow.Nodes)), attempts: make([]roost.AttemptNumber, len(s.Flow.Nodes)),
			changed: s.At}
	}
	if s.Schedule != nil {
		j.schedule = &auditedSchedule{ScheduleTerms: *s.Schedule, runs: map[int64]roost.JobID{}, decided: s.At}
	}
}

// checkRecovered checks that a restarted schedd has all jobs whose ids were shown to
// users.
func (a *Auditor) checkRecovered(s *Event) {
	for _, j := range a.sortedJobs() {
		if j.id.Host == s.Node && j.shown && !slices.Contains(s.Jobs, j.id) {
			a.addViolation(1, jobHistory(j.id), "%v was shown to a user, and the schedd knows nothing of it", j.id)
		}
	}
}

// checkArchived checks that a job goes into the history only after all its tasks have
// ended (P1).
func (a *Auditor) checkArchived(s *Event) {
	j := a.jobs[s.Job]
	if j == nil {
		return
	}
	j.archived = true
	for i := range j.tasks {
		if j.tasks[i].isUnfinished() && (j.wants(i) || len(j.tasks[i].processes) > 0) {
			a.addViolation(1, taskHistory(s.Job.Task(i)), "%v leaves the queue, and its task %d has not come to an end",
				s.Job, i)
			return
		}
	}
}

// sortedJobs lists the jobs in order of their ids.
func (a *Auditor) sortedJobs() []*auditedJob {
	all := make([]*auditedJob, 0, len(a.jobs))
	for _, j := range a.jobs {
		all = append(all, j)
	}
	slices.SortFunc(all, func(x, y *auditedJob) int { return x.id.Compare(y.id) })
	return all
}
