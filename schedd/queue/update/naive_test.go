package update

import (
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost/internal/mutant"
)

// This is how updates would be decided if every task were looked at each time. It says
// what a Tally must come to.

// naivePlanner is one call of naiveDecide.
type naivePlanner struct {
	Plan
	count  int
	facts  []TaskFact
	policy *Policy
	now    int64
	states []TaskState
}

// naiveDecide returns what is to be done about an update of a job of count tasks. The
// facts beyond count are of its surge tasks.
func naiveDecide(u Update, p *Policy, count int, facts []TaskFact, now time.Time) Plan {
	d := &naivePlanner{Plan: Plan{Update: u}, count: count, facts: facts, policy: p, now: now.UnixNano()}
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
func (d *naivePlanner) correctTimes() {
	u := &d.Update
	if u.ClockFrom > d.now || u.Moved > d.now || u.Pulsed > d.now {
		u.ClockFrom, u.Moved, u.Pulsed = min(u.ClockFrom, d.now), min(u.Moved, d.now), min(u.Pulsed, d.now)
		d.Changed = true
	}
	shared := true
	for i := range d.facts {
		if d.facts[i].Since-d.now <= int64(d.policy.Settling) {
			continue
		}
		if shared { // with the caller; most clocks are right, and nothing is copied
			d.facts, shared = slices.Clone(d.facts), false
		}
		d.facts[i].Since = 0
	}
}

// become brings the update into another state.
func (d *naivePlanner) become(to State, reason string) {
	d.Update.move(to, reason, d.now)
	d.Changed = true
}

// advance goes on with an active update.
func (d *naivePlanner) advance() {
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
func (d *naivePlanner) readStates() {
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
		if d.states[i] == TaskResizing {
			d.Again = earlier(d.Again, f.resizeEnds(d.policy))
		}
	}
}

// noteFailures finds the tasks that do not come up.
func (d *naivePlanner) noteFailures() {
	if !d.Update.State.moves() {
		return
	}
	for i := range d.facts {
		if !d.states[i].inProgress() || d.states[i] == TaskResizing {
			continue
		}
		fails, again := d.facts[i].failsNow(d.policy, d.now)
		if !fails {
			d.Again = earlier(d.Again, again)
		} else {
			at, _ := slices.BinarySearch(d.Update.Failed, i)
			d.Update.Failed = slices.Insert(d.Update.Failed, at, i)
			d.Changed, d.states[i], d.facts[i].Planned = true, TaskFailed, false
		}
	}
}

// noteProgress starts the clock again when a task became new after it was started.
func (d *naivePlanner) noteProgress() {
	last := int64(0)
	for i := range d.facts {
		if f := &d.facts[i]; d.states[i] == TaskNew && f.Condition == Ready {
			last = max(last, f.readyAt(d.policy.Settling))
		}
	}
	if d.Update.ClockFrom != 0 && last > d.Update.ClockFrom && last <= d.now {
		d.Update.ClockFrom, d.Changed = last, true
	}
}

// failed ends the update, or turns it back, when its failures or its time are spent.
func (d *naivePlanner) failed() bool {
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
func (d *naivePlanner) pulseOverdue() bool {
	if d.policy.Pulse <= 0 {
		return false
	}
	until := d.Update.Pulsed + int64(d.policy.Pulse)
	d.Again = earlier(d.Again, until)
	return d.now >= until
}

// autoPromote accepts the canaries after the time that the policy gives, if they work.
func (d *naivePlanner) autoPromote() {
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
func (d *naivePlanner) finish() {
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
func (d *naivePlanner) spent() bool {
	return d.policy.Disruptions >= 0 && d.Update.State == Rolling && d.Update.Disrupted >= d.policy.Disruptions
}

// wantedSurge is how many tasks there are to be beyond the count of the job while it is
// updated. Canaries that the policy has room for are such tasks, and then no others.
func (d *naivePlanner) wantedSurge() int {
	surge := d.policy.surge(d.count)
	if d.canaryPhase() && d.policy.Canary <= surge {
		surge = d.policy.Canary
	} else if !d.needsRestarts() {
		return d.surgeStillNeeded()
	}
	if len(d.facts)-d.count > surge { // they are of an update before, which had more of them
		return max(surge, d.surgeStillNeeded())
	}
	return surge
}

// needsRestarts reports whether a task has to be stopped to get the target, or is being
// started for it. No task makes room for one that is resized where it is.
func (d *naivePlanner) needsRestarts() bool {
	for i := range d.count {
		if s := d.states[i]; s == TaskOld && !d.facts[i].Resizable || s.inProgress() && s != TaskResizing {
			return true
		}
	}
	return len(d.Update.Alike) == 0
}

// surgeStillNeeded is how many surge tasks are left after an update. Ready ones remain
// while they stand in for tasks that are down.
func (d *naivePlanner) surgeStillNeeded() int {
	budget := naiveBudget(d.policy, d.count, d.facts, d.now)
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
func (d *naivePlanner) inProgress() (n int) {
	for i := range d.count {
		if d.states[i].inProgress() && (d.states[i] != TaskWaiting || d.facts[i].Planned) {
			n++
		}
	}
	return n
}

// replaceTasks chooses the tasks that get the target revision now. Those that are down
// anyway come first, then ready ones as far as the budget has room.
func (d *naivePlanner) replaceTasks() {
	d.replaceSurge()
	if !d.canaryPhase() {
		d.replaceAmong(d.count)
		return
	}
	if from, to := d.canaries(); from == 0 {
		d.replaceAmong(to)
	}
	if d.canariesWork() {
		d.become(WaitingPromote, canariesReason(d.policy.Canary))
		d.autoPromote()
	}
}

// canaries returns the tasks that prove the new revision. They are the first ones of the
// job, or surge tasks if the policy has enough of them.
func (d *naivePlanner) canaries() (from, to int) {
	if d.policy.Canary <= d.policy.surge(d.count) {
		return d.count, d.count + d.policy.Canary
	}
	return 0, d.canaryEnd()
}

// canaryPhase reports whether only canaries may be replaced.
func (d *naivePlanner) canaryPhase() bool { return d.Update.State == Rolling && !d.Update.Promoted }

// canaryEnd is the first index that is no canary, where they take the place of tasks.
func (d *naivePlanner) canaryEnd() int {
	n := 0
	for i := range d.count {
		if n == d.policy.Canary {
			return i
		}
		if d.states[i] != TaskExcluded {
			n++
		}
	}
	return d.count
}

// canariesWork reports whether all canaries are there and have proved themselves.
func (d *naivePlanner) canariesWork() bool {
	from, to := d.canaries()
	if to > len(d.facts) {
		return false
	}
	for _, s := range d.states[from:to] {
		if s != TaskNew && s != TaskExcluded {
			return false
		}
	}
	return true
}

// replaceSurge gives surge tasks of another revision the target. None of them counts for
// the job; one that is ready stays, because it makes room.
func (d *naivePlanner) replaceSurge() {
	for i := d.count; i < min(len(d.facts), d.count+d.Surge); i++ {
		if f := &d.facts[i]; d.states[i] == TaskOld && f.Condition != Ready {
			d.Replace = append(d.Replace, Replacement{Index: i, Stop: f.hasAttempt()})
		}
	}
}

// resize has a task become larger or smaller where it is. It returns how many it takes of
// those that may still be replaced now.
func (d *naivePlanner) resize(i, free int) int {
	switch at := d.facts[i].ResizeAt; {
	case d.now < at:
		d.Again = earlier(d.Again, at)
		return 0
	case free <= 0:
		return 0
	}
	d.Replace = append(d.Replace, Replacement{Index: i, Resize: true})
	return 1
}

// replaceAmong chooses among the tasks below an index. An undo goes from the last to the
// first.
func (d *naivePlanner) replaceAmong(end int) {
	remain := d.facts[:min(len(d.facts), d.count+d.Surge)] // a surge task that goes now makes no room
	budget := naiveBudget(d.policy, d.count, remain, d.now)
	d.Again = earlier(d.Again, budget.Changes)
	free, room := d.policy.atOnce(d.count)-d.inProgress(), budget.Room()
	for _, down := range []bool{true, false} {
		for n := range end {
			i := n
			if d.Update.State == Undoing {
				i = end - 1 - n
			}
			f := &d.facts[i]
			if d.states[i] != TaskOld || (f.Condition != Ready) != down {
				continue
			}
			if f.Resizable {
				free -= d.resize(i, free)
				continue
			}
			stop := f.hasAttempt()
			if stop && (free <= 0 || d.spent()) || f.Condition == Ready && room <= 0 {
				continue
			}
			d.Replace = append(d.Replace, Replacement{Index: i, Planned: f.Condition == Ready, Stop: stop})
			if stop {
				free--
				if d.Update.State == Rolling {
					d.Update.Disrupted++
				}
				d.Changed = true
			}
			if f.Condition == Ready {
				room--
			}
		}
	}
}

// naiveBudget adds up the budget of a job of count tasks. The facts beyond count are of
// its surge tasks.
func naiveBudget(p *Policy, count int, facts []TaskFact, now int64) Budget {
	b := Budget{Limit: p.maxDown(count)}
	for i := range facts {
		f := &facts[i]
		switch {
		case i >= count:
			if f.Condition == Ready {
				b.Spare++
			}
		case f.Condition == Ready, f.Absent:
		case f.Planned:
			b.Planned++
		case f.WasReady:
			if until := f.Since + int64(p.ReadyWithin); now < until {
				b.Failing++
				b.Changes = earlier(b.Changes, until)
			}
		}
	}
	return b
}
