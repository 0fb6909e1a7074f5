package audit

import (
	"slices"
	"time"

	"github.com/roost-batch/roost"
)

// lookEvery is how often it is looked after who waits for what.
const lookEvery = time.Second

// progress holds the pool against P9 from the last fault on: a task that could run does not wait for longer than patience allows while a machine has room for
// it all the time. That is less than is promised where many wait, and catches what hangs: whatever is lost in a pool, somebody waits beside a machine that is
// free.
//
// What has room is judged by what lives, not by books: those may be what is wrong.
func (a *Auditor) progress(at time.Duration) {
	if !a.isCalm || at < a.looked+lookEvery {
		return
	}
	// Nothing was seen since the last look but what has been taken in: how things stand now, they have stood since then.
	a.looked = at
	waits := a.waits(at)
	a.room(at, waits)
	for _, id := range waits {
		j := a.jobs[id.Job]
		since := a.waiting[id]
		for _, name := range a.names() {
			free, ok := a.machines[name].roomFor[j.resources]
			if !ok || at-max(since, free) <= a.rules.Patience {
				continue
			}
			a.now = max(a.now, at)
			a.breach(9, ofTask(id), "%v could run since %s, %s has had room for it since %s, and the last fault was over at %s", id, Clock(since), name, Clock(free), Clock(a.calm))
			a.waiting[id] = never // once is enough
			break
		}
	}
}

// waits lists the tasks that could run and do not, in order, and notes since when.
func (a *Auditor) waits(at time.Duration) (list []roost.TaskID) {
	for _, j := range a.jobs {
		if !j.printed {
			continue
		}
		for i := range j.tasks {
			t, id := &j.tasks[i], j.id.Task(i)
			if !t.open() || t.held || len(t.living) > 0 {
				delete(a.waiting, id)
				continue
			}
			if _, ok := a.waiting[id]; !ok {
				a.waiting[id] = max(a.calm, t.freed)
			}
			if a.waiting[id] != never {
				list = append(list, id)
			}
		}
	}
	slices.SortFunc(list, byTask)
	return list
}

// room notes since when machines have room for those that wait. What is free while a larger task waits for what still runs there is none: it may be held for
// that one (backfilling), for as long as those run.
func (a *Auditor) room(at time.Duration, waits []roost.TaskID) {
	wanted := map[roost.Resources]bool{}
	for _, id := range waits {
		wanted[a.jobs[id.Job].resources] = true
	}
	for _, m := range a.machines {
		free, held := m.lends.Sub(m.used()), false
		for r := range wanted {
			held = held || r.Fits(m.lends) && !r.Fits(free)
		}
		for r := range wanted {
			_, had := m.roomFor[r]
			switch fits := !m.asleep && !held && r.Fits(free); {
			case !fits:
				delete(m.roomFor, r)
			case !had:
				m.roomFor[r] = at
			}
		}
	}
}

// unfinished holds against P9 what has not come to its end when all is over.
func (a *Auditor) unfinished() {
	for _, j := range a.sorted() {
		for i := range j.tasks {
			if t := &j.tasks[i]; j.printed && t.open() && (!t.held || t.gone) {
				id := j.id.Task(i)
				a.breach(9, ofTask(id), "%v has not come to its end by %s, and the last fault was over at %s", id, Clock(a.now), Clock(a.calm))
			}
		}
	}
}
