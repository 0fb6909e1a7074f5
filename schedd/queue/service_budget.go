package queue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/update"
)

// A service has one budget of disruptions, max_down, for all planned causes: updates,
// drained machines, and restarts for a live check. Naively each cause would count what it
// has taken down itself; two of them together then take down twice as many.
//
// What nobody may refuse charges it, too: a preempted task, and one that was evicted
// after the deadline of a drain, are down like one that has failed. Others wait for it.

// budget adds up the budget of a service.
func (j serviceTasks) budget(now int64) update.Budget {
	u := update.Update{}
	if j.update != nil {
		u = j.update.Update
	}
	return u.Budget(j.spec.Update, len(j.state), revisionsOf(j.job).revisionFacts(), now)
}

// mayBePlannedDown reports whether a task that is not ready may be started again. That
// takes nothing from those that are ready, so that other failures do not forbid it.
func (j serviceTasks) mayBePlannedDown(known map[uint64]update.Budget, now time.Time) bool {
	b, ok := known[j.seq]
	if !ok {
		b = j.budget(now.UnixNano())
		known[j.seq] = b
	}
	return b.Planned < b.Limit+b.Spare
}

// noteCharge is for a planned cause that has taken tasks down.
func (j serviceTasks) noteCharge(at int64) {
	if b := j.budget(at); b.Exceeded() {
		j.ownExtras().overcharged = fmt.Sprintf("%d tasks of %d are down for planned causes, and %d may be", b.Planned,
			len(j.state), b.Limit+b.Spare)
	}
}

// checkBudget panics when planned causes have ever taken down more tasks than they may
// (S1). Afterwards the budget itself may become smaller.
func checkBudget(j *job) {
	if j.overcharged != "" {
		panic(fmt.Sprintf("queue: job %d: %s", j.seq, j.overcharged))
	}
}

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
	decided, budgets := map[uint64]bool{}, map[uint64]update.Budget{}
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
		case r.Updated.Planned || serviceTasks{j}.mayBePlannedDown(budgets, now):
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
	r.Service.RestartOf, r.Service.Updated.Planned = r.Attempt, true
	serviceTasks{j}.noteCharge(q.eventTime)
	q.vacates = append(q.vacates, healthVacate(q.attemptOf(j, i), reason))
}

func healthVacate(a roost.AttemptID, reason string) VacateAttempt {
	return VacateAttempt{Attempt: a, Checkpoint: true, Reason: reason}
}
