package queue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/mutant"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/update"
)

// A service has one budget of disruptions, max_down, for all planned causes: updates,
// drained machines, and restarts for a live check. Naively each cause would count what it
// has taken down itself; two of them together then take down twice as many.
//
// What nobody may refuse charges it, too: a preempted task, and one that was evicted
// after the deadline of a drain, are down like one that has failed. Others wait for it.

// tally returns the tasks of a service, added up for decisions about its budget and its
// updates.
func (j serviceTasks) tally() *update.Tally {
	if j.tallied == nil {
		j.ownExtras().tallied = update.NewTally(revisionsOf(j.job).taskFact)
	}
	return j.tallied
}

// lastUpdate is the newest update of a service, as it is.
func (j serviceTasks) lastUpdate() *update.Update {
	if j.update == nil {
		return &update.Update{}
	}
	return &j.update.Update
}

// toRun is how many tasks are to run, the first ones: those that its user wants, and
// surge tasks.
func (j serviceTasks) toRun() int { return min(j.wanted()+j.surge(), len(j.state)) }

// budget adds up the budget of a service.
func (j serviceTasks) budget(now int64) update.Budget {
	return j.tally().Budget(j.lastUpdate(), j.spec.Update, j.wanted(), j.toRun(), now)
}

// charged is the budget without the tasks that are down for another reason.
func (j serviceTasks) charged(at int64) update.Budget {
	return j.tally().Charged(j.lastUpdate(), j.spec.Update, j.wanted(), j.toRun(), at)
}

// markTasks notes which tasks of a service an event concerns. Those that concern all of
// them, or are seldom, have all be looked at again.
func (j serviceTasks) markTasks(e *eventlog.JobEvent) {
	if j.tallied == nil {
		return
	}
	switch e.Type {
	case eventlog.UpdateChanged, eventlog.Ticked, eventlog.TickSkipped, eventlog.Signalled:
	case eventlog.Assigned, eventlog.Started, eventlog.Ended, eventlog.Lost, eventlog.BackoffEnded, eventlog.Evicted,
		eventlog.BecameReady, eventlog.BecameUnready, eventlog.Resized, eventlog.ResizeRefused,
		eventlog.Checkpointed, eventlog.CheckpointFailed, eventlog.CheckpointBad, eventlog.OwnerSuspended,
		eventlog.OwnerResumed:
		j.tallied.Mark(e.Index)
	default:
		if len(e.Ranges) == 0 {
			j.tallied.MarkAll()
		}
		for _, r := range e.Ranges {
			for i := r.First; i <= r.Last; i++ {
				j.tallied.Mark(i)
			}
		}
	}
}

// mayBePlannedDown reports whether a task that is not ready may be started again. That
// takes nothing from those that are ready, so that other failures do not forbid it. So
// many are about to be.
func (j serviceTasks) mayBePlannedDown(now time.Time, more int) bool {
	b := j.charged(now.UnixNano())
	return b.Planned+more < b.Limit+b.Spare
}

// chargeTask is for a planned cause that has taken a task down. One that is down for
// another planned cause already is charged for.
func chargeTask(j *job, r *eventlog.TaskRecord, at int64) {
	if t := &r.Service.Updated; !t.Planned {
		t.Planned = true
		serviceTasks{j}.noteCharge(at)
	}
}

// noteCharge is for a planned cause that has taken tasks down.
func (j serviceTasks) noteCharge(at int64) {
	if b := j.charged(at); b.Exceeded() {
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
	if j.tallied == nil {
		return
	}
	t, u := serviceTasks{j}, serviceTasks{j}.lastUpdate()
	at := t.tally().LookedAt(0)
	anew := update.NewTally(revisionsOf(j).taskFact)
	if got, want := t.budget(at), anew.Budget(u, j.spec.Update, t.wanted(), t.toRun(), at); got != want {
		panic(fmt.Sprintf("queue: job %d: its budget is %+v, and its tasks come to %+v", j.seq, got, want))
	}
	got, want := t.tally().States(u, j.spec.Update, t.wanted(), t.toRun(), at),
		anew.States(u, j.spec.Update, t.wanted(), t.toRun(), at)
	if !maps.Equal(got, want) {
		panic(fmt.Sprintf("queue: job %d: its tasks are counted as %v, and are %v", j.seq, got, want))
	}
}

// A task whose check for "live" has failed is started again. That is a planned
// disruption of its job: if all tasks fail at once, as when a database that all of them
// need is away, only so many are started again at a time as may be down.

// NoteFailing notes whether a live attempt's check for "live" has failed. Nothing of it
// is in the log: a machine repeats it at the beginning of each session.
func (q *pendingEffects) NoteFailing(a roost.AttemptID, failing bool) {
	if failing && q.IsLive(a) && q.jobs[a.Task.Job.Seq].spec.Service != nil {
		if _, there := q.failing[a]; !there {
			q.addFailing(a, "")
		}
	} else if q.failing[a] == "" {
		delete(q.failing, a)
	}
}

// NoteOutdated notes that a live attempt of a service has to be started again to get what
// has changed. Nothing of it is in the log: its schedd finds it out again.
func (q *pendingEffects) NoteOutdated(a roost.AttemptID, reason string) {
	if q.IsLive(a) && q.jobs[a.Task.Job.Seq].spec.Service != nil {
		q.addFailing(a, reason)
	}
}

func (q *pendingEffects) addFailing(a roost.AttemptID, reason string) {
	q.failing[a] = reason
	if at, found := slices.BinarySearchFunc(q.failingOrder, a, compareAttempts); !found {
		q.failingOrder = slices.Insert(q.failingOrder, at, a)
	}
}

// HealthRestarts decides which failing attempts are ended. It is to be asked again until
// it decides nothing.
func (q *Queue) HealthRestarts(now time.Time) (events []eventlog.JobEvent) {
	charged := map[uint64]int{} // by job: what was decided here
	for n := 0; n < len(q.failingOrder); {
		a := q.failingOrder[n]
		reason, failing := q.failing[a]
		if !failing || !q.IsLive(a) || q.jobs[a.Task.Job.Seq].records.Own(a.Task.Index).Service.RestartOf == a.Attempt {
			delete(q.failing, a)
			q.failingOrder = slices.Delete(q.failingOrder, n, n+1)
			continue
		}
		j := q.jobs[a.Task.Job.Seq]
		r := j.records.Own(a.Task.Index)
		switch {
		case j.state[a.Task.Index] == roost.Suspended:
		case r.Service.Updated.Planned || mutant.Active(mutant.RestartUnbounded):
			events = append(events, healthRestart(now, a, r.Service, reason))
		case serviceTasks{j}.mayBePlannedDown(now, charged[j.seq]):
			charged[j.seq]++
			events = append(events, healthRestart(now, a, r.Service, reason))
		default: // its other tasks have to wait as well
			next := roost.AttemptID{Task: roost.TaskID{Job: roost.JobID{Seq: j.seq + 1}}}
			n, _ = slices.BinarySearchFunc(q.failingOrder, next, compareAttempts)
			continue
		}
		n++
	}
	return events
}

// healthRestart is the event by which a failing attempt is ended.
func healthRestart(now time.Time, a roost.AttemptID, s *eventlog.ServiceRecord, reason string) eventlog.JobEvent {
	e := eventAbout(now, eventlog.BecameUnready, a)
	e.ServiceState, e.Force, e.Reason = roost.ServiceLeaving, true, reason
	if e.Reason == "" {
		e.HealthCheck, e.CountsRestart = s.Check, true
		e.Reason = fmt.Sprintf("live check %s failed: %s", s.Check, cmp.Or(s.Detail, "no reason was given"))
	}
	return e
}

func compareAttempts(a, b roost.AttemptID) int {
	return cmp.Or(cmp.Compare(a.Task.Job.Seq, b.Task.Job.Seq), cmp.Compare(a.Task.Index, b.Task.Index),
		cmp.Compare(a.Attempt, b.Attempt))
}

// restartForHealth folds in that an attempt is ended for a check.
func (q *Queue) restartForHealth(j *job, i int, r *eventlog.TaskRecord, e eventlog.JobEvent) {
	r.Service.RestartOf = r.Attempt
	if e.CountsRestart {
		r.Service.FailedCheckOf = r.Attempt
	}
	chargeTask(j, r, q.eventTime)
	q.vacates = append(q.vacates, healthVacate(q.attemptOf(j, i), e.Reason))
}

func healthVacate(a roost.AttemptID, reason string) VacateAttempt {
	return VacateAttempt{Attempt: a, Checkpoint: true, Reason: reason}
}

// A service or an alloc set has as many tasks as its user wants. A service has perhaps
// some more while it is updated. After either number has become smaller there are others
// that are removed. They stay where they are: an index means the same task always.

// wanted is how many tasks the user wants. They are the first ones.
func (j serviceTasks) wanted() int {
	n := j.spec.AllocCount
	if j.spec.Service != nil {
		n = j.spec.Service.Count
	}
	if n > 0 && n < len(j.state) {
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
	if j.spec.Service != nil || j.spec.IsAlloc {
		return serviceTasks{j}.wanted()
	}
	return len(j.state)
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
	if j.spec.IsAlloc {
		e.Reason = "its alloc set has fewer allocs now"
	}
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

// runsAny reports whether any task of a service is to run. Of one that is held or removed
// as a whole no task is added.
func (j serviceTasks) runsAny() bool {
	for i, s := range j.state[:j.wanted()] {
		if r := j.records.Get(i); !s.IsFinal() && (r == nil || !r.HoldWanted && !r.RemoveWanted) {
			return true
		}
	}
	return false
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
