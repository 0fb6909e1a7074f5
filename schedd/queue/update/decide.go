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
	Stop    bool // it has an attempt
}

// planner is one call of Decide.
type planner struct {
	Plan
	count  int
	facts  []TaskFact
	policy *Policy
	now    int64
	states []TaskState
}

// Decide returns what is to be done about an update of a job of count tasks. The facts
// beyond count are of its surge tasks. Policy is that of the newer revision, and while
// tasks go back that of the older. It asks nobody, and to ask it twice is harmless.
func Decide(u Update, p *Policy, count int, facts []TaskFact, now time.Time) Plan {
	d := &planner{Plan: Plan{Update: u}, count: count, facts: facts, policy: p, now: now.UnixNano()}
	d.correctTimes()
	d.Update.Failed, d.Surge = slices.Clone(u.Failed), d.surgeStillNeeded()
	switch {
	case u.State.IsActive():
		d.advance()
	case (u.State == Done || u.State == Undone) && d.now >= u.Moved+int64(CloseAfter):
		d.become(Closed, "")
	case u.State == Done || u.State == Undone:
		d.Again = u.Moved + int64(CloseAfter)
	}
	return d.Plan
}

// correctTimes corrects times in the future, which the clock left that was set back
// since. Waits would be longer by that. Those of the update begin anew, and a task that
// would settle for more than twice as long as it has to has done so.
func (d *planner) correctTimes() {
	u := &d.Update
	if u.ClockFrom > d.now || u.Moved > d.now || u.Pulsed > d.now {
		u.ClockFrom, u.Moved, u.Pulsed = min(u.ClockFrom, d.now), min(u.Moved, d.now), min(u.Pulsed, d.now)
		d.Changed = true
	}
	d.facts = slices.Clone(d.facts)
	for i := range d.facts {
		if f := &d.facts[i]; f.Since-d.now > int64(d.policy.Settling) {
			f.Since = 0
		}
	}
}

// become brings the update into another state.
func (d *planner) become(to State, reason string) {
	d.Update.move(to, reason, d.now)
	d.Changed = true
}

// advance goes on with an active update.
func (d *planner) advance() {
	d.readStates()
	d.noteFailures()
	d.noteProgress()
	if d.Update.State.moves() && d.failed() { // the policy may now be that of the other revision
		d.Surge, d.Again = len(d.facts)-d.count, d.now
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
		d.Surge = len(d.facts) - d.count
	}
}

// readStates works out how far each task has come.
func (d *planner) readStates() {
	d.states = make([]TaskState, len(d.facts))
	for i := range d.facts {
		f := &d.facts[i]
		d.states[i] = d.Update.TaskState(i, f, d.policy, d.now)
		if i >= d.count && d.states[i] == TaskExcluded {
			d.states[i] = TaskNew
		}
		if d.states[i] == TaskSettling {
			d.Again = earlier(d.Again, f.readyAt(d.policy.Settling))
		}
	}
}

// noteFailures finds the tasks that do not come up.
func (d *planner) noteFailures() {
	if !d.Update.State.moves() {
		return
	}
	for i := range d.facts {
		if !d.states[i].inProgress() {
			continue
		}
		fails, again := d.facts[i].failsNow(d.policy, d.now)
		d.Again = earlier(d.Again, again)
		if fails {
			at, _ := slices.BinarySearch(d.Update.Failed, i)
			d.Update.Failed = slices.Insert(d.Update.Failed, at, i)
			d.Changed, d.states[i] = true, TaskFailed
		}
	}
}

// noteProgress starts the clock again when a task became new after it was started.
func (d *planner) noteProgress() {
	if d.Update.ClockFrom == 0 {
		return
	}
	for i := range d.facts {
		if at := d.facts[i].readyAt(d.policy.Settling); d.states[i] == TaskNew && at > d.Update.ClockFrom {
			d.Update.ClockFrom, d.Changed = at, true
		}
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
	skipped := 0
	for i := range d.count {
		switch s := d.states[i]; {
		case s == TaskOld && d.spent() && d.facts[i].hasAttempt():
			skipped++
		case s == TaskOld && mutant.Active(mutant.UpdateDoneEarly):
		case s == TaskOld || s.inProgress():
			return
		}
	}
	switch {
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
	return d.policy.Disruptions >= 0 && d.Update.State == Rolling && d.Update.Disrupted >= d.policy.Disruptions
}

// wantedSurge is how many tasks there are to be beyond the count of the job while it is
// updated. Canaries that the policy has room for are such tasks, and then no others.
func (d *planner) wantedSurge() int {
	surge := d.policy.surge(d.count)
	if d.canaryPhase() && d.policy.Canary <= surge {
		surge = d.policy.Canary
	}
	if len(d.facts)-d.count > surge { // they are of an update before, which had more of them
		return max(surge, d.surgeStillNeeded())
	}
	return surge
}

// surgeStillNeeded is how many surge tasks are left after an update. Ready ones remain
// while they stand in for tasks that are down.
func (d *planner) surgeStillNeeded() int {
	budget := d.Update.Budget(d.policy, d.count, d.facts, d.now)
	if budget.Planned+budget.Failing <= budget.Limit {
		return 0
	}
	d.Again = earlier(d.Again, budget.Changes)
	n := len(d.facts) - d.count
	for n > 0 && d.facts[d.count+n-1].Condition != Ready {
		n--
	}
	return max(n, 0)
}

// inProgress counts the tasks that are being replaced now. One that waits for a machine
// and was down anyway does not hold up the others.
func (d *planner) inProgress() (n int) {
	for i := range d.count {
		if d.states[i].inProgress() && (d.states[i] != TaskWaiting || d.facts[i].Planned) {
			n++
		}
	}
	return n
}
