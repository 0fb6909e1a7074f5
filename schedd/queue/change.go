package queue

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/plant"
)

// This is what users ask of jobs, and what Roost does to whole ones: any number of tasks change by one event.

// each applies a change to the tasks that an event names.
func (q *Queue) each(j *job, e Event, change func(j *job, i int)) {
	q.together(j, func() {
		if len(e.Ranges) == 0 {
			for i := range j.state {
				change(j, i)
			}
		}
		for _, r := range e.Ranges {
			for i := r.First; i <= r.Last; i++ {
				change(j, i)
			}
		}
	})
}

// together has the ready tasks of a job counted once, when f has changed any number of them.
func (q *Queue) together(j *job, f func()) {
	j.unsettled = true
	f()
	j.unsettled = false
	q.settleJob(j)
}

// changeOf is what an event that a user asked for does to one task. Tasks that no attempt was made of share one note of it.
func (q *Queue) changeOf(j *job, e Event) func(j *job, i int) {
	switch e.What {
	case Held:
		note := j.annotate(record{held: true, hold: e.Reason, by: e.By})
		return func(j *job, i int) { q.hold(j, i, e, note) }
	case Released:
		return func(j *job, i int) { q.release(j, i) }
	case Suspended:
		return func(j *job, i int) { q.freeze(j, i, true) }
	case Resumed:
		return func(j *job, i int) { q.freeze(j, i, false) }
	case Requeued:
		return func(j *job, i int) { q.requeue(j, i) }
	case RemovalRequested, Dropped:
		note := j.annotate(record{removed: true, reason: e.Reason, by: e.By, ended: e.Time})
		return func(j *job, i int) { q.remove(j, i, e, note) }
	default:
		return func(j *job, i int) { q.retry(j, i) }
	}
}

func (q *Queue) hold(j *job, i int, e Event, note func(i int)) {
	switch s := j.state[i]; {
	case s.Final() || s == roost.Held && !e.Force:
	case s == roost.Idle && plant.Is(plant.DeafHold):
		r := j.of(i)
		r.held, r.hold, r.by = true, e.Reason, e.By
	case s.Active():
		r := j.of(i)
		r.held, r.hold, r.by = true, e.Reason, e.By
		q.asked = append(q.asked, Vacate{Attempt: q.attemptOf(j, i), Keep: j.plan.saving != nil && j.plan.saving.OnVacate, Reason: e.Reason})
	default:
		if r := j.book.written(i); r != nil {
			r.held, r.hold, r.by = true, e.Reason, e.By
		} else {
			note(i)
		}
		if s != roost.Held {
			q.transition(j, i, roost.Held)
		}
	}
}

func (q *Queue) release(j *job, i int) {
	if r := j.book.written(i); r != nil && !j.state[i].Final() {
		r.held, r.hold, r.by, r.own, r.machine = false, "", "", 0, 0
	}
	if j.state[i] == roost.Held {
		if j.book.written(i) == nil {
			j.forget(i)
		}
		if j.blocked() {
			q.transition(j, i, roost.Blocked)
		} else {
			q.transition(j, i, roost.Idle)
		}
	}
}

func (q *Queue) remove(j *job, i int, e Event, note func(i int)) {
	switch s := j.state[i]; {
	case s.Final():
	case s.Active():
		r := j.of(i)
		r.removed, r.reason, r.by, r.force = true, e.Reason, e.By, e.Force
		q.asked = append(q.asked, Vacate{Attempt: q.attemptOf(j, i), Fast: e.Force, Reason: e.Reason})
	default:
		if r := j.book.written(i); r != nil {
			r.removed, r.reason, r.by, r.ended = true, e.Reason, e.By, e.Time
		} else {
			note(i)
		}
		q.dropAll(j, i)
		j.ended = max(j.ended, e.Time)
		j.barren = j.barren || s == roost.Held || s == roost.Blocked
		q.transition(j, i, roost.Removed)
	}
}

func (q *Queue) retry(j *job, i int) {
	if !j.state[i].Final() {
		return
	}
	if j.state[i] == roost.Completed && !j.book.succeeded(i) {
		j.failed--
	}
	delete(q.done, j.seq)
	q.ripe[j.seq], j.barren = true, false
	if j.book.ref(i).kind() == kindNote {
		j.forget(i)
		q.again(j, i, &record{})
		return
	}
	r := j.of(i)
	r.removed, r.reason, r.by, r.force, r.held, r.hold, r.own, r.machine = false, "", "", false, false, "", 0, 0
	q.again(j, i, r.anew())
}

func (q *Queue) unblocked(j *job) {
	q.unwait(j)
	j.waits, j.on, j.sync, j.due = nil, 0, 0, true
	for _, other := range j.rivals {
		q.related(j, other)
	}
	q.loosen(j)
}
