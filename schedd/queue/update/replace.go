package update

import "fmt"

// replaceTasks chooses the tasks that get the target revision now. Those that are down
// anyway come first, then ready ones as far as the budget has room.
func (d *planner) replaceTasks() {
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

// canariesReason is why an update waits to be promoted.
func canariesReason(n int) string {
	if n == 1 {
		return "its canary works"
	}
	return fmt.Sprintf("its %d canaries work", n)
}

// canaries returns the tasks that prove the new revision. They are the first ones of the
// job, or surge tasks if the policy has enough of them.
func (d *planner) canaries() (from, to int) {
	if d.policy.Canary <= d.policy.surge(d.count) {
		return d.count, d.count + d.policy.Canary
	}
	return 0, d.canaryEnd()
}

// canaryPhase reports whether only canaries may be replaced.
func (d *planner) canaryPhase() bool { return d.Update.State == Rolling && !d.Update.Promoted }

// canaryEnd is the first index that is no canary, where they take the place of tasks.
func (d *planner) canaryEnd() int {
	if d.policy.Canary == 0 {
		return 0
	}
	last := d.tally.indexOf(d.policy.Canary, isIncluded)
	if last < 0 {
		return d.count
	}
	return min(last+1, d.count)
}

// canariesWork reports whether all canaries are there and have proved themselves.
func (d *planner) canariesWork() bool {
	from, to := d.canaries()
	return to <= d.tasks && d.tally.next(from, to, isUnproven.set()) < 0
}

// replaceSurge gives surge tasks of another revision the target. None of them counts for
// the job; one that is ready stays, because it makes room.
func (d *planner) replaceSurge() {
	end := min(d.tasks, d.count+d.Surge)
	for i := d.tally.next(d.count, end, oldDown.set()); i >= 0; i = d.tally.next(i+1, end, oldDown.set()) {
		d.Replace = append(d.Replace, Replacement{Index: i, Stop: d.tally.task(i).kinds&oldRunning.set() != 0})
	}
}

// hasAttempt reports whether there is something to be stopped.
func (f *TaskFact) hasAttempt() bool {
	return f.Condition == Starting || f.Condition == Unready || f.Condition == Ready
}

// replacement is what may still be replaced now.
type replacement struct {
	free int // tasks that may be stopped or resized
	room int // of these: ready ones that may be stopped
}

// replaceAmong chooses among the tasks below an index: those that are down, and then the
// ready ones. An undo goes from the last to the first.
func (d *planner) replaceAmong(end int) {
	spare := d.tally.sum(d.count, min(d.tasks, d.count+d.Surge)) // a surge task that goes now makes no room
	budget := budgetOf(d.policy, d.count, &d.job, &spare)
	d.Again = earlier(d.Again, budget.Changes)
	may := replacement{free: d.policy.atOnce(d.count) - d.job.of(countsAtOnce), room: budget.Room()}
	for _, ready := range []bool{false, true} {
		for from, to := 0, end; from < to; {
			of := d.candidates(may, ready)
			i := -1
			if back := d.Update.State == Undoing; back {
				i = d.tally.last(from, to, of)
				to = i
			} else {
				i = d.tally.next(from, to, of)
				from = i + 1
			}
			if i < 0 {
				break
			}
			d.replaceOne(i, &may)
		}
	}
}

// candidates is the kinds of tasks that may be replaced now.
func (d *planner) candidates(may replacement, ready bool) (of kindSet) {
	if !ready {
		of = replaceIdle.set()
	}
	switch {
	case may.free > 0 && ready:
		of |= resizeReady.set()
	case may.free > 0:
		of |= resizeDown.set()
	}
	if may.free <= 0 || d.spent() {
		return of
	}
	if !ready {
		return of | replaceDown.set()
	}
	if may.room > 0 {
		of |= replaceReady.set()
	}
	return of
}

// replaceOne has a task get the target.
func (d *planner) replaceOne(i int, may *replacement) {
	kinds := d.tally.task(i).kinds
	if kinds&(resizeDown.set()|resizeReady.set()) != 0 {
		d.Replace = append(d.Replace, Replacement{Index: i, Resize: true})
		may.free--
		return
	}
	planned, stop := kinds&replaceReady.set() != 0, kinds&oldRunning.set() != 0
	d.Replace = append(d.Replace, Replacement{Index: i, Planned: planned, Stop: stop})
	if planned {
		may.room--
	}
	if !stop {
		return
	}
	may.free--
	if d.Update.State == Rolling {
		d.Update.Disrupted++
	}
	d.Changed = true
}
