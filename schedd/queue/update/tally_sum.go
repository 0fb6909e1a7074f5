package update

import "slices"

// taskKind is a question about a task: how many there are of which the answer is yes.
type taskKind uint8

// The kinds.
const (
	downPlanned    taskKind = iota // a planned cause has taken it down
	downFailing                    // it is down for another reason, and that counts in the budget
	isReady                        //
	isUnproven                     // it has not the target, or has not proved itself with it
	isIncluded                     // the update concerns it
	oldRunning                     // it is old, and has an attempt
	oldIdle                        // it is old, and has none
	oldDown                        // it is old, and not ready
	isReplaced                     // it is in progress
	needsRestart                   // it is old and has to be stopped, or is being started
	countsAtOnce                   // of those at_once allows so many
	isFailing                      // it does not come up
	replaceIdle                    // of the old ones: it can get the target at once
	replaceDown                    // it can be stopped, and is not ready
	replaceReady                   // it can be stopped, and is ready
	resizeDown                     // it can be resized, and is not ready
	resizeReady                    // it can be resized, and is ready
	firstStateKind                 // it is in the first TaskState, and so on
	taskKinds      = firstStateKind + taskKind(TaskResizing) + 1
)

// kindSet is some kinds, as bits.
type kindSet uint32

func (k taskKind) set() kindSet { return 1 << k }

// tallyTask is what is added up of a task. Times are unix nanoseconds; 0: none.
type tallyTask struct {
	kinds        kindSet
	again        int64 // when time alone changes it
	failingUntil int64
	provenAt     int64 // when it had proved itself
}

// tallySum is some tasks.
type tallySum struct {
	counts              [taskKinds]int32
	again, failingUntil int64 // of the first one
	provenAt            int64 // of the last one
}

func (s *tallySum) add(t tallyTask) {
	for k := range taskKinds {
		s.counts[k] += int32(t.kinds >> k & 1)
	}
	s.again, s.failingUntil = earlier(s.again, t.again), earlier(s.failingUntil, t.failingUntil)
	s.provenAt = max(s.provenAt, t.provenAt)
}

func (s *tallySum) merge(o *tallySum) {
	for k := range o.counts {
		s.counts[k] += o.counts[k]
	}
	s.again, s.failingUntil = earlier(s.again, o.again), earlier(s.failingUntil, o.failingUntil)
	s.provenAt = max(s.provenAt, o.provenAt)
}

// has reports whether a task is of one of some kinds.
func (s *tallySum) has(of kindSet) bool {
	for k, n := range s.counts {
		if n > 0 && of&taskKind(k).set() != 0 {
			return true
		}
	}
	return false
}

// of is how many tasks are of a kind.
func (s *tallySum) of(k taskKind) int { return int(s.counts[k]) }

// add has a task be of a kind.
func (t *tallyTask) add(k taskKind, is bool) {
	if is {
		t.kinds |= k.set()
	}
}

// task looks at one task.
func (t *Tally) task(i int) (a tallyTask) {
	t.looks++
	v, f := &t.view, t.fact(i)
	f.correctSince(v.policy, v.now, &a.again)
	if _, found := slices.BinarySearch(t.fresh, i); found {
		f.Planned = false
	}
	state := v.update.TaskState(i, &f, v.policy, v.now)
	a.add(firstStateKind+taskKind(state), true)
	if i >= v.count && state == TaskExcluded {
		state = TaskNew
	}
	a.add(isReady, f.Condition == Ready)
	a.addBudget(&f, v.policy, v.now)
	a.add(isUnproven, state != TaskNew && state != TaskExcluded)
	a.add(isIncluded, state != TaskExcluded)
	switch {
	case state == TaskOld:
		a.addOld(&f, v.now)
	case state == TaskNew && f.Condition == Ready:
		a.provenAt = f.readyAt(v.policy.Settling)
	case state == TaskFailed && f.Condition == Ready: // and may prove itself yet
		a.again = earlier(a.again, f.readyAt(v.policy.Settling))
	case state.inProgress():
		a.addProgress(&f, state, v.policy, v.now)
	}
	return a
}

// correctSince corrects a time in the future, which the clock left that was set back
// since. A task that would settle for more than twice as long as it has to has done so.
func (f *TaskFact) correctSince(p *Policy, now int64, again *int64) {
	if f.Since-now > int64(p.Settling) {
		*again, f.Since = earlier(*again, f.Since-int64(p.Settling)), 0
	}
}

// addBudget adds what a task costs of the budget. One that failed counts for as long as
// it may need to come back, which is ready_within: a task that cannot run at all would
// block every update otherwise.
func (t *tallyTask) addBudget(f *TaskFact, p *Policy, now int64) {
	switch {
	case f.Condition == Ready, f.Absent:
	case f.Planned:
		t.add(downPlanned, true)
	case f.WasReady:
		if until := f.Since + int64(p.ReadyWithin); now < until {
			t.add(downFailing, true)
			t.failingUntil, t.again = until, earlier(t.again, until)
		}
	}
}

// addOld adds a task that has not the target yet.
func (t *tallyTask) addOld(f *TaskFact, now int64) {
	t.add(oldRunning, f.hasAttempt())
	t.add(oldIdle, !f.hasAttempt())
	t.add(oldDown, f.Condition != Ready)
	if !f.Resizable {
		t.add(needsRestart, true)
		t.add(replaceIdle, !f.hasAttempt())
		t.add(replaceDown, f.hasAttempt() && f.Condition != Ready)
		t.add(replaceReady, f.Condition == Ready)
		return
	}
	if now < f.ResizeAt {
		t.again = earlier(t.again, f.ResizeAt)
		return
	}
	t.add(resizeDown, f.Condition != Ready)
	t.add(resizeReady, f.Condition == Ready)
}

// addProgress adds a task that is being replaced. One that waits for a machine and was
// down anyway does not hold up the others.
func (t *tallyTask) addProgress(f *TaskFact, state TaskState, p *Policy, now int64) {
	t.add(isReplaced, true)
	t.add(countsAtOnce, state != TaskWaiting || f.Planned)
	switch state {
	case TaskResizing:
		t.again = earlier(t.again, f.resizeEnds(p))
		return
	case TaskSettling:
		t.again = earlier(t.again, f.readyAt(p.Settling))
	default:
	}
	t.add(needsRestart, true)
	fails, at := f.failsNow(p, now)
	t.add(isFailing, fails)
	if !fails {
		t.again = earlier(t.again, at)
	}
}
