package queue

import (
	"fmt"
	"maps"
	"slices"

	"github.com/roost-batch/roost"
)

// Check panics when the state contradicts itself. Tests and the simulator call it after each event.
func (q *Queue) Check() {
	tasks := 0
	ready := map[RequestID]int{}
	q.checkDemands()
	open := map[uint32]int{}
	for seq, j := range q.jobs {
		n := q.checkJob(j, ready)
		tasks += n
		if open[j.sub.UID] += n; open[j.sub.UID] == 0 {
			delete(open, j.sub.UID)
		}
		if j.seq != seq {
			panic(fmt.Sprintf("queue: job %d stands at %d", j.seq, seq))
		}
	}
	for seq, dependents := range q.dependents {
		for dependent := range dependents {
			if q.jobs[dependent] == nil {
				panic(fmt.Sprintf("queue: job %d has %d for a dependent, which is not there", seq, dependent))
			}
		}
	}
	if tasks != q.tasks {
		panic(fmt.Sprintf("queue: %d tasks are open, and %d are counted", tasks, q.tasks))
	}
	if !maps.Equal(open, q.open) {
		panic(fmt.Sprintf("queue: users have %v tasks open, and %v are counted", open, q.open))
	}
	for id, r := range q.requests {
		if r.Ready != ready[id] {
			panic(fmt.Sprintf("queue: request %d has %d tasks ready, and says %d", id, ready[id], r.Ready))
		}
	}
}

// checkJob checks one job, adds up its ready tasks by request, and returns how many of its tasks are open.
func (q *Queue) checkJob(j *job, ready map[RequestID]int) (open int) {
	if e := j.eligible; (e.since != 0) != (j.counts[roost.Idle] > 0) || e.since != 0 && e.entered == 0 || e.total < 0 {
		panic(fmt.Sprintf("queue: job %d has %d tasks that wait for a machine, and says %+v", j.seq, j.counts[roost.Idle], e))
	}
	q.checkGangs(j)
	q.checkRelations(j)
	var counts [roost.Removed + 1]int
	active, failed := 0, 0
	for i, s := range j.state {
		counts[s]++
		r := j.book.at(i)
		live := r != nil && r.live
		if live != s.Active() {
			panic(fmt.Sprintf("queue: %v is %v, and its attempt is live: %v", j.id(q.host).Task(i), s, live))
		}
		if live {
			active++
		}
		if s == roost.Completed && !j.book.succeeded(i) {
			failed++
		}
		if j.class(i).ready.has(i) != (s == roost.Idle) {
			panic(fmt.Sprintf("queue: %v is %v, and ready: %v", j.id(q.host).Task(i), s, s != roost.Idle))
		}
		if !s.Final() {
			open++
		}
		if j.urgent[i] != nil && s != roost.Idle && !s.Active() || j.class(i).past == nil && j.class(i).plan.now != j.whereNow(i) {
			panic(fmt.Sprintf("queue: %v is %v, and is to run now at %q, asked for at %q", j.id(q.host).Task(i), s, j.whereNow(i), j.class(i).plan.now))
		}
	}
	q.checkShown(j)
	if counts != j.counts || active != j.active || failed != j.failed {
		panic(fmt.Sprintf("queue: job %d counts %v, %d active, %d failed, and says %v, %d, %d", j.seq, counts, active, failed, j.counts, j.active, j.failed))
	}
	for _, c := range j.classes {
		if (c.place >= 0) != (c.count > 0 && !c.full()) {
			panic(fmt.Sprintf("queue: a class of job %d with %d ready tasks stands at place %d", j.seq, c.count, c.place))
		}
	}
	for _, s := range j.shares {
		count := 0
		for _, c := range j.classes {
			if c.share == s {
				count += c.count
			}
		}
		if count != s.count || s.told != s.most(j) {
			panic(fmt.Sprintf("queue: a share of job %d has %d tasks ready and room for %d, and says %d, %d", j.seq, count, j.room(), s.count, s.told))
		}
		ready[s.request.ID] += s.told
	}
	return open
}

// checkDemands adds up anew what each payer may hold.
func (q *Queue) checkDemands() {
	q.recount()
	sums := map[Payer]Demand{}
	for seq, j := range q.jobs {
		if q.unasked[seq] {
			continue // nobody has allowed it yet
		}
		kinds := make([]kind, len(j.classes))
		for n, c := range j.classes {
			kinds[n].each = c.plan.resources
		}
		for i, s := range j.state {
			if !s.Final() {
				kinds[max(slices.Index(j.classes, j.class(i)), 0)].open++
			}
		}
		sums[j.payer()] = sums[j.payer()].Add(demandOf(kinds, j.plan.maxRunning*j.stride()).asOne(&j.plan))
	}
	maps.DeleteFunc(sums, func(_ Payer, d Demand) bool { return d == Demand{} })
	if !maps.Equal(sums, q.demands) {
		panic(fmt.Sprintf("queue: the demand is %v, and is told as %v", sums, q.demands))
	}
}

// checkRelations checks that a job's tasks stand where what it waits for has them, and that rivals know each other.
func (q *Queue) checkRelations(j *job) {
	if j.counts[roost.Blocked] > 0 && !j.blocked() || j.counts[roost.Idle] > 0 && j.blocked() {
		panic(fmt.Sprintf("queue: job %d is blocked: %v, and counts %v", j.seq, j.blocked(), j.counts))
	}
	if j.on < 0 || j.sync < 0 {
		panic(fmt.Sprintf("queue: job %d waits for %d and %d jobs", j.seq, j.on, j.sync))
	}
	begun, all := false, true
	for _, seq := range j.rivals {
		o := q.jobs[seq]
		all = all && o != nil
		begun = begun || o != nil && o.begun()
		if o != nil && !o.final() && !slices.Contains(o.rivals, j.seq) && !j.final() {
			panic(fmt.Sprintf("queue: job %d is a rival of %d, and that not of it", j.seq, seq))
		}
	}
	if all && begun != j.stopped && !j.final() {
		panic(fmt.Sprintf("queue: job %d with the rivals %v is stopped: %v, and a rival has begun: %v", j.seq, j.rivals, j.stopped, begun))
	}
}
