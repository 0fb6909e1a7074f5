package queue

import (
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/mutant"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/update"
)

// NodeDrain is a machine whose tasks are to go elsewhere.
type NodeDrain struct {
	Node     string
	Reason   string
	From     time.Time
	Until    time.Time // zero: no end
	Deadline time.Time // from then on all end that still run there; zero: never
}

// nodeDrains knows the machines that are drained. Nothing of it is in the log: the
// negotiator says it again at the beginning of each session.
type nodeDrains struct {
	*jobTable
	drains  []NodeDrain
	waiting map[uint64]bool          // jobs with tasks that wait for their budget
	evicted map[roost.AttemptID]bool // attempts that end
	again   time.Time                // when EvictAttempts has more to decide, as far as time says
}

func newNodeDrains(jobs *jobTable) *nodeDrains {
	return &nodeDrains{jobTable: jobs, waiting: map[uint64]bool{}, evicted: map[roost.AttemptID]bool{}}
}

// SetDrains replaces what is known of drained machines.
func (q *nodeDrains) SetDrains(all []NodeDrain) {
	q.drains = slices.Clone(all)
	clear(q.evicted)
	q.beginEvictions()
}

// Drains lists the machines that are drained by now.
func (q *nodeDrains) Drains(now time.Time) (begun []NodeDrain) {
	q.beginEvictions()
	for _, d := range q.drains {
		switch {
		case now.Before(d.From):
			q.lookAgain(d.From)
		case d.Until.IsZero() || now.Before(d.Until):
			begun = append(begun, d)
		}
	}
	return begun
}

// beginEvictions forgets why tasks wait.
func (q *nodeDrains) beginEvictions() {
	q.again = time.Time{}
	for seq := range q.waiting {
		if j := q.jobs[seq]; j != nil {
			j.ownExtras().evictionWaits = nil
		}
	}
	clear(q.waiting)
}

func (q *nodeDrains) lookAgain(at time.Time) {
	if q.again.IsZero() || at.Before(q.again) {
		q.again = at
	}
}

// NextEviction is when EvictAttempts has more to decide without anything happening; zero:
// never.
func (q *nodeDrains) NextEviction() time.Time { return q.again }

// EvictAttempts decides which of the attempts on a drained machine are ended now. Those
// of services go elsewhere as the budgets of their jobs allow, and all others may run to
// their end. An alloc goes with all that is inside. After the deadline all of them are
// ended.
func (q *nodeDrains) EvictAttempts(now time.Time, d NodeDrain, attempts []roost.AttemptID) (
	events []eventlog.JobEvent) {
	late := !d.Deadline.IsZero() && !now.Before(d.Deadline)
	if !d.Deadline.IsZero() && !late {
		q.lookAgain(d.Deadline)
	}
	evict := func(a roost.AttemptID, planned bool) {
		e := eventAbout(now, eventlog.Evicted, a)
		e.Planned, e.Reason = planned, d.evictionReason(late)
		events = append(events, e)
	}
	budgets := map[uint64]*update.Budget{}
	var ready, allocs []roost.AttemptID
	for _, a := range attempts {
		if !q.IsLive(a) || q.evicted[a] {
			continue
		}
		j := q.jobs[a.Task.Job.Seq]
		r := j.records.Own(a.Task.Index)
		switch {
		case r.RemoveWanted || r.HoldWanted || r.RequeueWanted || r.Service != nil && r.IsEnding():
		case late:
			evict(a, false)
		case j.spec.IsAlloc:
			allocs = append(allocs, a)
		case j.spec.Inside.Alloc != 0: // it goes with its alloc
		case r.Service == nil || j.state[a.Task.Index] == roost.Suspended:
		case r.Condition() != update.Ready: // which costs nothing
			evict(a, false)
		default:
			ready = append(ready, a)
		}
	}
	for _, a := range ready {
		j := q.jobs[a.Task.Job.Seq]
		if b := q.budgetOf(now, j, budgets); b.Room() > 0 {
			b.Planned++
			evict(a, true)
		} else {
			q.noteWait(j, a.Task.Index, *b)
		}
	}
	for _, a := range allocs {
		if inside, ok := q.mayMoveAlloc(now, a, budgets); ok {
			for _, one := range inside {
				evict(one.AttemptID, one.planned)
			}
			evict(a, false)
		}
	}
	return events
}

// budgetOf returns what may be down of a job, with what this round has decided.
func (q *nodeDrains) budgetOf(now time.Time, j *job, budgets map[uint64]*update.Budget) *update.Budget {
	b := budgets[j.seq]
	if b == nil {
		sum := serviceTasks{j}.budget(now.UnixNano())
		if b = &sum; mutant.Active(mutant.BudgetOfOneCause) {
			b.Planned, b.Failing = 0, 0
		}
		budgets[j.seq] = b
	}
	return b
}

// movedAttempt is an attempt that goes with its alloc. Planned: the budget of its job is
// charged.
type movedAttempt struct {
	roost.AttemptID
	planned bool
}

// mayMoveAlloc decides whether an alloc may go, and charges what is inside. All services
// inside need room in their budgets, and tasks of batch may run to their end.
func (q *nodeDrains) mayMoveAlloc(now time.Time, alloc roost.AttemptID,
	budgets map[uint64]*update.Budget) (inside []movedAttempt, ok bool) {
	needed := map[*job]int{}
	for _, seq := range q.inside[alloc.Task.Job.Seq] {
		j := q.jobs[seq]
		for i, s := range j.state {
			r := j.records.Own(i)
			if !s.IsActive() || r.AllocIndex != alloc.Task.Index || r.AllocAttempt != alloc.Attempt {
				continue
			}
			if r.Service == nil {
				return nil, false
			}
			one := movedAttempt{q.attemptOf(j, i), r.Condition() == update.Ready}
			if one.planned {
				needed[j]++
			}
			if b := q.budgetOf(now, j, budgets); one.planned && b.Room() < needed[j] {
				q.noteWait(j, i, *b)
				return nil, false
			}
			if !r.IsEnding() && !q.evicted[one.AttemptID] {
				inside = append(inside, one)
			}
		}
	}
	for j, n := range needed {
		budgets[j.seq].Planned += n
	}
	return inside, true
}

// noteWait notes that a task waits for the budget of its job.
func (q *nodeDrains) noteWait(j *job, i int, b update.Budget) {
	if b.Changes != 0 {
		q.lookAgain(time.Unix(0, b.Changes))
	}
	x := j.ownExtras()
	if x.evictionWaits == nil {
		x.evictionWaits = map[int]string{}
	}
	q.waiting[j.seq] = true
	x.evictionWaits[i] = fmt.Sprintf("its machine is drained, and it waits: %d of the other tasks are down, "+
		"and max_down is %d", b.Planned+b.Failing, b.Limit)
}

// evictionReason is why an attempt ends.
func (d *NodeDrain) evictionReason(late bool) string {
	why := "its machine is drained"
	if late {
		why = "the deadline for its machine to be drained is over"
	}
	if d.Reason != "" {
		why += ": " + d.Reason
	}
	return why
}

// applyEvicted folds in that an attempt ends because its machine is drained.
func (q *Queue) applyEvicted(j *job, e eventlog.JobEvent) {
	r := q.liveRecord(j, e)
	if r.Service != nil {
		r.Service.RestartOf = r.Attempt
		serviceTasks{j}.setState(e.Index, r, roost.ServiceLeaving, e.Time)
		if r.Service.Check, r.Service.Detail = "", e.Reason; e.Planned {
			chargeTask(j, r, e.Time)
		}
	}
	q.evicted[q.attemptOf(j, e.Index)] = true
	delete(j.evictionWaits, e.Index)
	q.vacates = append(q.vacates, VacateAttempt{Attempt: q.attemptOf(j, e.Index), ReleaseClaim: true,
		Checkpoint: r.Service != nil || j.spec.Checkpoints != nil && j.spec.Checkpoints.OnVacate, Reason: e.Reason})
}
