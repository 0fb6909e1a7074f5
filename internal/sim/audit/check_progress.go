package audit

import (
	"slices"
	"time"

	"github.com/roost-batch/roost"
)

// progressInterval is the time between two checks of P9.
const progressInterval = time.Second

// checkProgress checks P9 after the last fault. A runnable task must not wait for longer
// than StartWait while a machine has room for it all the time. Where many tasks wait this
// is less than what P9 demands. It still finds every hang: whatever a pool has lost, a
// task waits beside a free machine.
//
// Room is computed from live attempts and not from the claim table, which may be wrong.
func (a *Auditor) checkProgress(at time.Duration) {
	if !a.hasFaultsEnded || at < a.progressChecked+progressInterval {
		return
	}
	// No event has come since the last check, so the present state has held since then.
	a.progressChecked = at
	a.checkUpdates(at)
	a.checkSurplus(at)
	a.checkSchedules(at)
	a.checkFlows(at)
	a.checkReadyNames(at)
	a.checkCharges(at)
	waits := a.waitingTasks(at)
	a.noteRoom(at, waits)
	for _, id := range waits {
		j := a.jobs[id.Job]
		since := a.waiting[id]
		for _, name := range a.machineNames() {
			free, ok := a.machines[name].roomSince[j.resources]
			t := &j.tasks[id.Index]
			free = max(free, t.freed+roost.AvoidDuration(t.failures[name]))
			if !ok || at-max(since, free) <= a.rules.StartWait {
				continue
			}
			a.now = max(a.now, at)
			a.addViolation(9, taskHistory(id), "%v could run since %s, %s has had room for it since %s, and the last "+
				"fault was over at %s", id, ClockText(since), name, ClockText(free), ClockText(a.faultsEnded))
			a.waiting[id] = noDeadline // report it once
			break
		}
	}
}

// waitingTasks lists the tasks that are runnable and do not run, in order. It records
// since when they wait.
func (a *Auditor) waitingTasks(at time.Duration) (list []roost.TaskID) {
	for _, j := range a.jobs {
		if !j.shown || j.inside || j.isRun || j.schedule != nil || j.flow != nil {
			continue // they wait for something else than machines
		}
		for i := range j.tasks {
			t, id := &j.tasks[i], j.id.Task(i)
			if !t.isUnfinished() || t.held || len(t.processes) > 0 || !j.wants(i) {
				delete(a.waiting, id)
				continue
			}
			if _, ok := a.waiting[id]; !ok {
				a.waiting[id] = max(a.faultsEnded, t.freed+j.longestWait())
			}
			if a.waiting[id] != noDeadline {
				list = append(list, id)
			}
		}
	}
	slices.SortFunc(list, byTask)
	return list
}

// noteRoom records since when machines have room for the waiting tasks. Free resources do
// not count while a larger task waits for running tasks of that machine: the pool may
// reserve them for it (backfill).
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

// checkUnfinished checks at the end that every task has ended (P9).
func (a *Auditor) checkUnfinished() {
	for _, j := range a.sortedJobs() {
		for i := range j.tasks {
			t := &j.tasks[i]
			if j.shown && t.isUnfinished() && (!t.held || t.toBeRemoved) && (j.wants(i) || len(t.processes) > 0) {
				id := j.id.Task(i)
				a.addViolation(9, taskHistory(id),
					"%v has not come to its end by %s, and the last fault was over at %s", id, ClockText(a.now),
					ClockText(a.faultsEnded))
			}
		}
	}
}

// longestWait is for how long a task of the job may wait for its restart.
func (j *auditedJob) longestWait() time.Duration {
	if j.service == nil {
		return 0
	}
	return j.service.BackoffMax
}
