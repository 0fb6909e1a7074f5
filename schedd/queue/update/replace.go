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
		d.become(WaitingPromote, fmt.Sprintf("%d canaries work", d.policy.Canary))
		d.autoPromote()
	}
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
func (d *planner) canariesWork() bool {
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
func (d *planner) replaceSurge() {
	for i := d.count; i < min(len(d.facts), d.count+d.Surge); i++ {
		if f := &d.facts[i]; d.states[i] == TaskOld && f.Condition != Ready {
			d.Replace = append(d.Replace, Replacement{Index: i, Stop: f.hasAttempt()})
		}
	}
}

// hasAttempt reports whether there is something to be stopped.
func (f *TaskFact) hasAttempt() bool {
	return f.Condition == Starting || f.Condition == Unready || f.Condition == Ready
}

// replaceAmong chooses among the tasks below an index. An undo goes from the last to the
// first.
func (d *planner) replaceAmong(end int) {
	remain := d.facts[:min(len(d.facts), d.count+d.Surge)] // a surge task that goes now makes no room
	budget := d.Update.Budget(d.policy, d.count, remain, d.now)
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
