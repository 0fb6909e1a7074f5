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
	return u.Budget(j.spec.Update, j.wanted(), j.facts(), now)
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
			j.wanted(), b.Limit+b.Spare)
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

// A service has as many tasks as its user wants, while it is updated perhaps some more,
// and after either number has become smaller others that are removed. They stay where
// they are: an index means the same task always.

// wanted is how many tasks the user wants. They are the first ones.
func (j serviceTasks) wanted() int {
	if n := j.spec.Service.Count; n > 0 && n < len(j.state) {
		return n
	}
	return len(j.state)
}

// surge is how many tasks there are beyond them.
func (j serviceTasks) surge() int {
	if j.update == nil {
		return 0
	}
	return j.update.Surge
}

// taskCount is how many tasks a job is to have by what its user says.
func taskCount(j *job) int {
	if j.spec.Service != nil {
		return serviceTasks{j}.wanted()
	}
	return len(j.state)
}

// facts lists what updates need to know of the tasks that are to run.
func (j serviceTasks) facts() []update.TaskFact {
	n := min(j.wanted()+j.surge(), len(j.state))
	return revisionsOf(j.job).revisionFacts(n)
}

// growService makes room for tasks of a service, and returns how many it has then. They
// belong to no class yet.
func (q updateChanges) growService(j *job, n int) int {
	add := n - len(j.state)
	if add <= 0 {
		return len(j.state)
	}
	state := roost.Idle
	if j.isBlocked() {
		state = roost.Blocked
	}
	q.countOpen(j, add)
	q.changes += add
	q.stateTotals.add(j, -1)
	j.counts[state] += int32(add)
	q.stateTotals.add(j, 1)
	j.state = append(slices.Clip(j.state), slices.Repeat([]roost.TaskState{state}, add)...)
	j.records.Grow(n)
	return n
}

// changeTaskCount has the first n tasks of a service run, and no others. Those with the
// highest indexes are ended as if their user had removed them.
func (q updateChanges) changeTaskCount(j *job, e eventlog.JobEvent, n int) {
	if e.Type == eventlog.SurgeChanged {
		had := len(j.state)
		if q.growService(j, n) > had {
			q.addToClass(j, had)
		}
		was := *j.update
		was.Surge = n - serviceTasks{j}.wanted()
		j.ownExtras().update = &was
	}
	from := int(j.tasksToRun)
	if from == 0 {
		from = n
	}
	e.Force, e.Reason = false, "its service has fewer tasks now"
	note := j.records.Share(eventlog.TaskRecord{RemoveWanted: true, Reason: e.Reason, RequestedBy: e.RequestedBy,
		Ended: e.Time})
	q.batchReady(j, func() {
		for i := n; i < len(j.state); i++ {
			if r := j.records.Own(i); r == nil || !r.RemoveWanted {
				q.applyRemovalRequested(j, i, e, note)
			}
		}
		for i := from; i < n; i++ {
			q.restoreTask(j, i)
		}
	})
	j.ownExtras().tasksToRun = int32(n)
}

// addToClass puts new tasks into the class of those that wait.
func (q updateChanges) addToClass(j *job, from int) {
	j.submission = q.shareSubmission(withCount(j.submittedJob(), len(j.state)))
	if len(j.classOf) > 0 {
		j.ownExtras().classOf = append(slices.Clip(j.classOf), make([]uint16, len(j.state)-from)...)
	}
	q.batchReady(j, func() {
		for i := from; i < len(j.state); i++ {
			j.class(i).open++
			q.setReady(j, i, j.state[i] == roost.Idle)
		}
	})
}

func withCount(s *eventlog.SubmittedJob, n int) *eventlog.SubmittedJob {
	s.Count = n
	return s
}

// restoreTask has a task run again that was removed because there were to be fewer. What
// an attempt of it says that still ends does not count.
func (q updateChanges) restoreTask(j *job, i int) {
	r := j.records.Own(i)
	if r != nil && r.Live && r.RemoveWanted {
		r.RemoveWanted, r.Reason, r.RequestedBy = false, "", ""
		r.Service.RestartOf = r.Attempt
	}
	q.applyRetried(j, i)
}

// isSurplus reports whether a task of a service is one that is not to run.
func (j serviceTasks) isSurplus(i int) bool { return j.tasksToRun > 0 && i >= int(j.tasksToRun) }
