package audit

import (
	"slices"
	"time"

	"github.com/roost-batch/roost"
)

// progressInterval is how often it is looked after who waits for what.
const progressInterval = time.Second

// checkProgress holds the pool against P9 from the last fault on: a task that could run
// does not wait for longer than patience allows while a machine has room for it all the
// time. That is less than is promised where many wait, and catches what hangs: whatever
// is lost in a pool, somebody waits beside a machine that is free.
//
// What has room is judged by what lives, not by books: those may be what is wrong.
func (a *Auditor) checkProgress(at time.Duration) {
	if !a.hasFaultsEnded || at < a.progressChecked+progressInterval {
		return
	}
	// Nothing was seen since the last look but what has been taken in: how things stand
	// now, they have stood since then.
	a.progressChecked = at
	waits := a.waitingTasks(at)
	a.noteRoom(at, waits)
	for _, id := range waits {
		j := a.jobs[id.Job]
		since := a.waiting[id]
		for _, name := range a.machineNames() {
			free, ok := a.machines[name].roomSince[j.resources]
			if !ok || at-max(since, free) <= a.rules.StartWait {
				continue
			}
			a.now = max(a.now, at)
			a.addViolation(9, taskHistory(id), "%v could run since %s, %s has had room for it since %s, and the last "+
				"fault was over at %s", id, ClockText(since), name, ClockText(free), ClockText(a.faultsEnded))
			a.waiting[id] = noDeadline // once is enough
			break
		}
	}
}

// waitingTasks lists the tasks that could run and do not, in order, and notes since when.
func (a *Auditor) waitingTasks(at time.Duration) (list []roost.TaskID) {
	for _, j := range a.jobs {
		if !j.shown {
			continue
		}
		for i := range j.tasks {
			t, id := &j.tasks[i], j.id.Task(i)
			if !t.isUnfinished() || t.held || len(t.processes) > 0 {
				delete(a.waiting, id)
				continue
			}
			if _, ok := a.waiting[id]; !ok {
				a.waiting[id] = max(a.faultsEnded, t.freed)
			}
			if a.waiting[id] != noDeadline {
				list = append(list, id)
			}
		}
	}
	slices.SortFunc(list, byTask)
	return list
}

// noteRoom notes since when machines have room for those that wait. What is free while a
// larger task waits for what still runs there is none: it may be held for that one
// (backfilling), for as long as those run.
func (a *Auditor) noteRoom(at time.Duration, waits []roost.TaskID) {
	wanted := map[roost.Resources]bool{}
	for _, id := range waits {
		wanted[a.jobs[id.Job].resources] = true
	}
	for _, m := range a.machines {
		free, held := m.offered.Sub(m.usedResources()), false
		for r := range wanted {
			held = held || r.FitsIn(m.offered) && !r.FitsIn(free)
		}
		for r := range wanted {
			_, had := m.roomSince[r]
			switch fits := !m.asleep && !held && r.FitsIn(free); {
			case !fits:
				delete(m.roomSince, r)
			case !had:
				m.roomSince[r] = at
			}
		}
	}
}

// checkUnfinished holds against P9 what has not come to its end when all is over.
func (a *Auditor) checkUnfinished() {
	for _, j := range a.sortedJobs() {
		for i := range j.tasks {
			if t := &j.tasks[i]; j.shown && t.isUnfinished() && (!t.held || t.toBeRemoved) {
				id := j.id.Task(i)
				a.addViolation(9, taskHistory(id),
					"%v has not come to its end by %s, and the last fault was over at %s", id, ClockText(a.now),
					ClockText(a.faultsEnded))
			}
		}
	}
}
