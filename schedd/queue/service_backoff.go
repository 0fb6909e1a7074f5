package queue

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/mutant"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/restart"
)

// A task of a service that ends by itself, whatever it says, is started again. It waits
// for that as a blocked task, and its claim waits with it, see package restart.

// restartSchedule has the tasks that wait for their restart.
type restartSchedule struct {
	*jobTable
	due      restart.DueHeap
	released []roost.TaskID // tasks that do not wait any more
}

// endsAnyTask reports whether an end is the task's own doing, or its machine's. What
// Roost ended, and an image that could not be restored, make no wait.
func endsAnyTask(x *eventlog.AttemptExit, r *eventlog.TaskRecord) bool {
	switch x.Cause {
	case eventlog.CauseRemoval, eventlog.CauseVacate, eventlog.CauseLease, eventlog.CausePreemption:
		return false
	case eventlog.CauseRestore:
		return r.Checkpoints == nil || r.Checkpoints.OriginSequence == 0
	}
	return true
}

// endsForCheck reports whether an attempt of a service ended for its live check and for
// nothing else. That is an end like one of the task's own.
func endsForCheck(r *eventlog.TaskRecord, x *eventlog.AttemptExit) bool {
	return r != nil && r.Service != nil && r.Service.FailedCheckOf == r.Attempt && r.Attempt != 0 &&
		!r.Service.Updated.Stopping && !r.RequeueWanted &&
		(x.Cause == eventlog.CauseVacate || endsAnyTask(x, r))
}

// restartPolicy is what the revision of a task says of restarts.
func (j serviceTasks) restartPolicy(i int) restart.Policy {
	p := j.serviceOf(i)
	return restart.Policy{First: p.BackoffFirst, Max: p.BackoffMax, Restarts: p.Restarts, Window: p.Window}
}

// restartTask has a task of a service wait for its next attempt.
func (q *Queue) restartTask(j *job, i int, r *eventlog.TaskRecord) {
	s := r.Service
	r.MachineFailures = 0
	q.dropAllImages(j, i) // what went wrong would go wrong again
	p := restart.Next(serviceTasks{j}.restartPolicy(i), restart.History{EarlyEnds: s.EarlyEnds, Recent: s.Recent},
		restart.TaskEnd{Job: j.seq, Index: i, Attempt: r.Attempt, Started: r.Started, ReadySince: s.ReadySince,
			Ended: r.Ended, ByMachine: r.Exit.Cause == eventlog.CauseMachine || r.Exit.Cause == eventlog.CausePrologue})
	if mutant.Active(mutant.BackoffSkipped) {
		p.Wait = 0
	}
	s.ReadySince = 0
	s.Restarts++
	s.EarlyEnds, s.Recent, s.ReuseClaim, s.NotBefore = p.EarlyEnds, p.Recent, p.SameMachine, r.Ended+int64(p.Wait)
	if r.RemoveWanted || r.HoldWanted {
		s.ReuseClaim, s.NotBefore = false, 0
	}
	if s.NotBefore <= r.Ended {
		q.requeueOrHold(j, i, r)
		return
	}
	delete(j.urgent, i)
	q.updateRestoreClass(j, i)
	q.setTaskState(j, i, roost.Blocked)
	s.Waits = true
	q.addRestart(j, i, s.NotBefore)
}

// addRestart notes that a task waits until some time.
func (q *restartSchedule) addRestart(j *job, i int, at int64) {
	j.ownExtras().waitingRestarts++
	q.due.Add(restart.DueTask{At: at, Job: j.seq, Index: i})
}

// endWait is for a task that waits for its restart no longer, whatever the cause.
func (q *restartSchedule) endWait(j *job, i int) {
	r := j.records.Own(i)
	if r == nil || r.Service == nil || !r.Service.Waits {
		return
	}
	if r.Service.Waits = false; j.state[i] != roost.Idle && j.state[i] != roost.Blocked {
		r.Service.ReuseClaim, r.Service.NotBefore = false, 0 // somebody wants something else with it
	}
	j.waitingRestarts--
	q.released = append(q.released, j.id(q.host).Task(i))
}

// waitsForRestart reports whether a task does.
func waitsForRestart(j *job, i int) bool {
	if j.waitingRestarts == 0 {
		return false
	}
	r := j.records.Own(i)
	return r != nil && r.Service != nil && r.Service.Waits
}

// DueRestarts decides which tasks have waited long enough. Asking twice is harmless.
func (q *restartSchedule) DueRestarts(now time.Time) (events []eventlog.JobEvent) {
	for {
		t, ok := q.firstWaiting()
		if !ok || !q.isDue(t, now.UnixNano()) {
			return events
		}
		q.due.RemoveFirst()
		events = append(events, eventlog.JobEvent{Type: eventlog.BackoffEnded, Time: now.UnixNano(), Job: t.Job,
			Index: t.Index})
	}
}

// isDue reports whether a task has waited long enough. A wait that would be longer than
// the longest one is over: the clock was set back since it began.
func (q *restartSchedule) isDue(t restart.DueTask, now int64) bool {
	return t.At <= now || time.Duration(t.At-now) > serviceTasks{q.jobs[t.Job]}.serviceOf(t.Index).BackoffMax
}

// NextRestart is when DueRestarts has something to decide next; zero for never.
func (q *restartSchedule) NextRestart() time.Time {
	t, ok := q.firstWaiting()
	if !ok {
		return time.Time{}
	}
	return time.Unix(0, t.At)
}

// firstWaiting is the next task that is due, without those that wait no more.
func (q *restartSchedule) firstWaiting() (t restart.DueTask, ok bool) {
	for {
		if t, ok = q.due.First(); !ok {
			return t, false
		}
		if j := q.jobs[t.Job]; j != nil && t.Index < len(j.state) && waitsForRestart(j, t.Index) &&
			j.records.Own(t.Index).Service.NotBefore == t.At {
			return t, true
		}
		q.due.RemoveFirst()
	}
}

// TakeReleasedRestarts drains the tasks that do not wait for their restart any more.
// Their time has come, or somebody has held or removed them.
func (q *restartSchedule) TakeReleasedRestarts() []roost.TaskID {
	out := q.released
	q.released = nil
	return out
}

// applyBackoffEnded folds in that a task has waited long enough.
func (q *Queue) applyBackoffEnded(j *job, e eventlog.JobEvent) {
	if e.Index >= len(j.state) || !waitsForRestart(j, e.Index) {
		panic(fmt.Sprintf("queue: %v of %v, which does not wait", e.Type, j.id(q.host).Task(e.Index)))
	}
	r := j.records.Own(e.Index)
	if t := (restart.DueTask{At: r.Service.NotBefore, Job: j.seq, Index: e.Index}); !q.isDue(t, e.Time) {
		panic(fmt.Sprintf("queue: the wait of %v ended %v too early", j.id(q.host).Task(e.Index),
			time.Duration(t.At-e.Time)))
	}
	if isTaskBlocked(q.jobTable, j, e.Index) {
		q.endWait(j, e.Index)
		return
	}
	q.setTaskState(j, e.Index, roost.Idle)
}

// ReusesClaim reports whether the next attempt of a task is to run on the claim of the
// last one.
func (q *restartSchedule) ReusesClaim(t roost.TaskID) bool {
	j := q.jobs[t.Job.Seq]
	if j == nil || t.Index < 0 || t.Index >= len(j.state) {
		return false
	}
	r := j.records.Own(t.Index)
	return r != nil && r.Service != nil && r.Service.ReuseClaim &&
		(waitsForRestart(j, t.Index) || j.state[t.Index] == roost.Idle)
}

// restartReason explains that a task waits for its restart.
func restartReason(r *eventlog.TaskRecord) string {
	return ordinal(r.Service.Restarts) + " restart, " + r.Exit.Describe()
}

// reason says how many tasks are ready, how many are lost, and why others wait for their
// restart.
func (j serviceTasks) reason() string {
	s := j.status()
	ready := fmt.Sprintf("%d of %d ready", s.ByState[roost.ServiceReady], s.Wanted)
	if n := s.ByState[roost.ServiceLost]; n > 0 {
		ready += fmt.Sprintf(", %d lost", n)
	}
	for i := j.nextWaiting(0); i >= 0; i = j.nextWaiting(i + 1) {
		if waitsForRestart(j.job, i) {
			return fmt.Sprintf("%s; %d wait for their restart: %s", ready, s.Waiting, j.records.Own(i).Exit.Describe())
		}
	}
	return ready
}

// nextWaiting is the next task, from one on, that may wait for its restart. It is -1 if
// none does.
func (j serviceTasks) nextWaiting(from int) int {
	if j.waitingRestarts == 0 {
		return -1
	}
	i := indexOfState(j.state[from:], roost.Blocked)
	if i < 0 {
		return -1
	}
	return from + i
}

// ordinal writes a number as in 1st, 2nd, 3rd, 4th.
func ordinal(n int) string {
	suffix := "th"
	if tens := n / 10 % 10; tens != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprintf("%d%s", n, suffix)
}

// checkRestart panics when the waits of a task are not what its job asks for. They are
// neither skipped nor longer than the bound.
func checkRestart(j *job, i int, r *eventlog.TaskRecord) {
	s, p := r.Service, serviceTasks{j}.serviceOf(i)
	altered := j.update != nil || j.spec.Alterations > 0 // so that what it asks for now may be another than it was then
	if s.Waits && j.state[i] != roost.Blocked || len(s.Recent) > p.Restarts && !altered {
		panic(fmt.Sprintf("queue: task %d of service %d is %v, waits: %v, after %d restarts on its machine", i, j.seq,
			j.state[i], s.Waits, len(s.Recent)))
	}
	if !s.Waits || altered {
		return
	}
	wait, full := time.Duration(s.NotBefore-r.Ended), serviceTasks{j}.restartPolicy(i).FullWait(s.EarlyEnds)
	if wait > p.BackoffMax || wait > full || wait < full*3/4 || s.EarlyEnds == 0 {
		panic(fmt.Sprintf("queue: task %d of service %d waits %v after %d early ends, want at most %v", i, j.seq, wait,
			s.EarlyEnds, full))
	}
}
