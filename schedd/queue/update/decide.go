package update

import (
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost/internal/mutant"
)

// Plan is what is to be done now.
type Plan struct {
	Update  Update // what the update becomes
	Changed bool   // it differs from what it was
	// Replace lists tasks whose next attempt is of the update's target; whoever has an
	// attempt is stopped in order
	Replace []Replacement
	// Surge is how many tasks there are to be beyond the count of the job
	Surge int
	Again int64 // when to ask again if nothing happens, unix nanoseconds; 0: no need
}

// Replacement is a task that gets another revision.
type Replacement struct {
	Index   int
	Planned bool // it was ready, so that the budget is charged
	Resize  bool // it becomes larger or smaller where it is, which charges nothing
	Stop    bool // it has an attempt
}

// planner is one call of Decide.
type planner struct {
	Plan
	tally  *Tally
	count  int
	tasks  int // with the surge tasks
	policy *Policy
	now    int64
	job    tallySum // its tasks without the surge tasks
	surge  tallySum
}

// Decide returns what is to be done about an update of a job. That has count tasks
// without its surge tasks. Policy is that of the newer revision, and while tasks go back
// that of the older. It asks nobody, and to ask it twice is harmless.
func (t *Tally) Decide(u Update, p *Policy, count, tasks int, now time.Time) Plan {
	d := &planner{Plan: Plan{Update: u}, tally: t, count: count, tasks: tasks, policy: p, now: now.UnixNano()}
	d.correctTimes()
	d.Update.Failed = slices.Clone(u.Failed)
	if active := u.State.IsActive(); active || tasks > count {
		t.look(&d.Update, p, count, tasks, d.now)
		d.addUp()
		d.Surge = d.surgeStillNeeded()
	}
	switch {
	case u.State.IsActive():
		d.advance()
	case (u.State == Done || u.State == Undone) && d.now >= u.Moved+int64(CloseAfter):
		d.become(Closed, "")
	case u.State == Done || u.State == Undone:
		d.Again = earlier(d.Again, u.Moved+int64(CloseAfter))
	}
	for _, i := range t.fresh { // whether they are down for a planned cause is said by the job from now on
		t.Mark(i)
	}
	t.fresh = nil
	return d.Plan
}

// addUp counts the tasks by their kinds.
func (d *planner) addUp() {
	d.job, d.surge = d.tally.sum(0, d.count), d.tally.sum(d.count, d.tasks)
}

// correctTimes corrects times of the update in the future, which the clock left that was
// set back since. Waits would be longer by that, and begin anew.
func (d *planner) correctTimes() {
	u := &d.Update
	if u.ClockFrom > d.now || u.Moved > d.now || u.Pulsed > d.now {
		u.ClockFrom, u.Moved, u.Pulsed = min(u.ClockFrom, d.now), min(u.Moved, d.now), min(u.Pulsed, d.now)
		d.Changed = true
	}
}

// become brings the update into another state.
func (d *planner) become(to State, reason string) {
	d.Update.move(to, reason, d.now)
	d.Changed = true
}

// advance goes on with an active update.
func (d *planner) advance() {
	d.Again = earlier(d.Again, earlier(d.job.again, d.surge.again))
	d.noteFailures()
	d.noteProgress()
	if d.Update.State.moves() && d.failed() { // the policy may now be that of the other revision
		d.Surge, d.Again = d.tasks-d.count, d.now
		return
	}
	switch {
	case d.Update.State == Rolling && d.pulseOverdue():
		d.become(WaitingPulse, "no pulse came in time")
	case d.Update.State == WaitingPromote:
		d.autoPromote()
	}
	d.finish()
	switch {
	case d.Update.State.moves():
		d.Surge = d.wantedSurge()
		d.replaceTasks()
	case d.Update.State.IsActive():
		d.Surge = d.tasks - d.count
	}
}

// noteFailures finds the tasks that do not come up.
func (d *planner) noteFailures() {
	if !d.Update.State.moves() || d.job.of(isFailing)+d.surge.of(isFailing) == 0 {
		return
	}
	for i := d.tally.next(0, d.tasks, isFailing.set()); i >= 0; i = d.tally.next(i+1, d.tasks, isFailing.set()) {
		at, _ := slices.BinarySearch(d.Update.Failed, i)
		d.Update.Failed = slices.Insert(d.Update.Failed, at, i)
		d.Changed = true
		d.tally.fails(i)
	}
	d.tally.look(&d.Update, d.policy, d.count, d.tasks, d.now)
	d.addUp()
}

// noteProgress starts the clock again when a task became new after it was started. Times
// in the future, which the clock left that was set back since, do not count; correctTimes
// would undo them for ever.
func (d *planner) noteProgress() {
	at := max(d.job.provenAt, d.surge.provenAt)
	if d.Update.ClockFrom != 0 && at > d.Update.ClockFrom && at <= d.now {
		d.Update.ClockFrom, d.Changed = at, true
	}
}

// failed ends the update, or turns it back, when its failures or its time are spent.
func (d *planner) failed() bool {
	reason := ""
	u := &d.Update
	switch {
	case len(u.Failed)-u.Forgiven > d.policy.Failures:
		reason = fmt.Sprintf("task %d has failed", u.Failed[len(u.Failed)-1])
		if len(u.Failed) > 1 {
			reason = fmt.Sprintf("%d tasks have failed, and failures = %d", len(u.Failed), d.policy.Failures)
		}
	case d.policy.Progress > 0 && d.now >= u.ClockFrom+int64(d.policy.Progress):
		reason = fmt.Sprintf("no task became ready within %v", d.policy.Progress)
	default:
		if d.policy.Progress > 0 {
			d.Again = earlier(d.Again, u.ClockFrom+int64(d.policy.Progress))
		}
		return false
	}
	switch {
	case u.State == Undoing:
		d.become(UndoPaused, reason)
	case d.policy.OnFailure == UndoOnFailure && u.From != 0 && !u.Restart:
		u.beginUndo(reason, d.now)
		d.Changed = true
	case d.policy.OnFailure == StayOnFailure:
		d.become(Aborted, reason)
	default:
		d.become(Paused, reason)
	}
	return true
}

// pulseOverdue reports whether approval from outside is missing.
func (d *planner) pulseOverdue() bool {
	if d.policy.Pulse <= 0 {
		return false
	}
	until := d.Update.Pulsed + int64(d.policy.Pulse)
	d.Again = earlier(d.Again, until)
	return d.now >= until
}

// autoPromote accepts the canaries after the time that the policy gives, if they work.
func (d *planner) autoPromote() {
	if d.policy.PromoteAfter <= 0 || !d.canariesWork() {
		return
	}
	if at := d.Update.Moved + int64(d.policy.PromoteAfter); d.now < at {
		d.Again = earlier(d.Again, at)
		return
	}
	d.Update.Promoted = true
	d.become(Rolling, "")
}

// finish ends the update when no task is left to be replaced.
func (d *planner) finish() {
	u := &d.Update
	skipped, left := 0, d.job.of(oldRunning)
	if d.spent() {
		skipped, left = left, 0
	}
	left += d.job.of(oldIdle)
	if mutant.Active(mutant.UpdateDoneEarly) {
		left = 0
	}
	switch {
	case left+d.job.of(isReplaced) > 0:
		return
	case !u.State.moves():
	case u.State == Undoing:
		d.become(Undone, u.Reason)
	case skipped > 0:
		d.become(Partial, fmt.Sprintf("it has stopped %d tasks, which is all that disruptions = %d allows",
			u.Disrupted, d.policy.Disruptions))
	default:
		d.become(Done, "")
	}
	d.Surge = d.surgeStillNeeded()
}

// spent reports whether the update may stop no more running tasks.
func (d *planner) spent() bool {
	if mutant.Active(mutant.DisruptionsUncounted) {
		return false
	}
	return d.policy.Disruptions >= 0 && d.Update.State == Rolling && d.Update.Disrupted >= d.policy.Disruptions
}

// wantedSurge is how many tasks there are to be beyond the count of the job while it is
// updated. Canaries that the policy has room for are such tasks, and then no others.
func (d *planner) wantedSurge() int {
	surge := d.policy.surge(d.count)
	if mutant.Active(mutant.SurgeUnbounded) && surge > 0 {
		surge = d.count + 1
	}
	if d.canaryPhase() && d.policy.Canary <= surge {
		surge = d.policy.Canary
	} else if !d.needsRestarts() {
		return d.surgeStillNeeded()
	}
	if d.tasks-d.count > surge { // they are of an update before, which had more of them
		return max(surge, d.surgeStillNeeded())
	}
	return surge
}

// needsRestarts reports whether a task has to be stopped to get the target, or is being
// started for it. No task makes room for one that is resized where it is.
func (d *planner) needsRestarts() bool { return d.job.of(needsRestart) > 0 || len(d.Update.Alike) == 0 }

// surgeStillNeeded is how many surge tasks are left after an update. Ready ones remain
// while they stand in for tasks that are down.
func (d *planner) surgeStillNeeded() int {
	budget := budgetOf(d.policy, d.count, &d.job, &d.surge)
	if budget.Planned+budget.Failing <= budget.Limit {
		return 0
	}
	d.Again = earlier(d.Again, budget.Changes)
	return max(d.tally.last(d.count, d.tasks, isReady.set())+1-d.count, 0)
}
