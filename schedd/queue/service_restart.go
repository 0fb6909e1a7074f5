package queue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// A task whose check for "live" has failed is started again. That is a planned
// disruption of its job: if all tasks fail at once, as when a database that all of them
// need is away, only so many are started again at a time as may be down.

// NoteFailing notes whether a live attempt's check for "live" has failed. Nothing of it
// is in the log: a machine repeats it at the beginning of each session.
func (q *pendingEffects) NoteFailing(a roost.AttemptID, failing bool) {
	if failing && q.IsLive(a) && q.jobs[a.Task.Job.Seq].spec.Service != nil {
		q.failing[a] = true
	} else {
		delete(q.failing, a)
	}
}

// HealthRestarts decides which failing attempts are ended, one of each job at a time. It
// is to be asked again until it decides nothing.
func (q *Queue) HealthRestarts(now time.Time) (events []eventlog.JobEvent) {
	if len(q.failing) == 0 {
		return nil
	}
	decided := map[uint64]bool{}
	for _, a := range slices.SortedFunc(maps.Keys(q.failing), compareAttempts) {
		if !q.IsLive(a) {
			delete(q.failing, a)
			continue
		}
		j := q.jobs[a.Task.Job.Seq]
		r := j.records.Own(a.Task.Index).Service
		switch {
		case r.RestartOf == a.Attempt:
			delete(q.failing, a)
		case decided[j.seq]:
		case j.state[a.Task.Index] == roost.Suspended:
		case serviceTasks{j}.healthRestarts() < serviceTasks{j}.maxHealthRestarts():
			decided[j.seq] = true
			e := eventAbout(now, eventlog.BecameUnready, a)
			e.ServiceState, e.HealthCheck, e.Force = roost.ServiceLeaving, r.Check, true
			e.Reason = fmt.Sprintf("live check %s failed: %s", r.Check, cmp.Or(r.Detail, "no reason was given"))
			events = append(events, e)
		default:
			decided[j.seq] = true // its other tasks have to wait as well
		}
	}
	return events
}

func compareAttempts(a, b roost.AttemptID) int {
	return cmp.Or(cmp.Compare(a.Task.Job.Seq, b.Task.Job.Seq), cmp.Compare(a.Task.Index, b.Task.Index),
		cmp.Compare(a.Attempt, b.Attempt))
}

// restartForHealth folds in that an attempt is ended for a check.
func (q *Queue) restartForHealth(j *job, i int, r *eventlog.TaskRecord, reason string) {
	r.Service.RestartOf = r.Attempt
	if n, most := (serviceTasks{j}).healthRestarts(), (serviceTasks{j}).maxHealthRestarts(); n > most {
		panic(fmt.Sprintf("queue: %d tasks of job %d are started again for their checks, and %d may be down", n,
			j.seq, most))
	}
	q.vacates = append(q.vacates, healthVacate(q.attemptOf(j, i), reason))
}

func healthVacate(a roost.AttemptID, reason string) VacateAttempt {
	return VacateAttempt{Attempt: a, Checkpoint: true, Reason: reason}
}

// healthRestarts counts the tasks that were ended for a check, and are not ready again.
func (j serviceTasks) healthRestarts() (n int) {
	for i, s := range j.state {
		if s.IsFinal() || s == roost.Held {
			continue
		}
		if r := j.records.Own(i); r != nil && r.Service != nil && r.Service.RestartOf != 0 {
			n++
		}
	}
	return n
}

// maxHealthRestarts is how many tasks of the job may be down for that at once: one, or
// one in twenty.
func (j serviceTasks) maxHealthRestarts() int { return max(1, len(j.state)/20) }
