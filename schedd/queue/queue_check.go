package queue

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/roost-batch/roost"
)

// Check panics when the state contradicts itself. Tests and the simulator call it after
// each event.
func (q *Queue) Check() {
	tasks := 0
	ready := map[RequestID]int{}
	q.checkDemands()
	q.checkStateTotals()
	q.checkSchedules()
	q.checkFlows()
	q.checkAllocs()
	open := map[uint32]int{}
	for seq, j := range q.jobs {
		n := q.checkJob(j, ready)
		tasks += n
		if open[j.submission.uid] += n; open[j.submission.uid] == 0 {
			delete(open, j.submission.uid)
		}
		if j.seq != seq {
			panic(fmt.Sprintf("queue: job %d stands at %d", j.seq, seq))
		}
		if j.spec.Service != nil && !q.services[seq] {
			panic(fmt.Sprintf("queue: job %d is a service, and not in the list of them", seq))
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
	if !maps.Equal(open, q.openByUser) {
		panic(fmt.Sprintf("queue: users have %v tasks open, and %v are counted", open, q.openByUser))
	}
	for id, r := range q.requests {
		if r.Ready != ready[id] {
			panic(fmt.Sprintf("queue: request %d has %d tasks ready, and says %d", id, ready[id], r.Ready))
		}
	}
}

// checkSchedules checks that an instant of a schedule has one run in the queue (S10). A
// job with a schedule does not run itself.
func (q *jobTable) checkSchedules() {
	runs := map[string]uint64{}
	for seq, j := range q.jobs {
		if j.schedule != q.schedules[seq] || (j.schedule != nil) != (j.spec.Schedule != nil) {
			panic(fmt.Sprintf("queue: job %d has the schedule %v, and that is %v", seq, j.spec.Schedule, j.schedule))
		}
		if j.schedule != nil && (j.active > 0 || j.counts[roost.Idle] > 0 || j.firstStarted != 0) {
			panic(fmt.Sprintf("queue: job %d has a schedule, and runs itself", seq))
		}
		by, _, ok := RunOfKey(j.texts.key())
		if !ok {
			continue
		}
		if other := runs[j.texts.key()]; other != 0 {
			panic(fmt.Sprintf("queue: jobs %d and %d are both the run %s", seq, other, j.texts.key()))
		}
		if runs[j.texts.key()] = seq; !slices.Contains(q.runs[by], seq) {
			panic(fmt.Sprintf("queue: job %d is no run of %d", seq, by))
		}
	}
	for by, list := range q.runs {
		for _, seq := range list {
			if q.jobs[seq] == nil {
				panic(fmt.Sprintf("queue: job %d is a run of %d, and is not there", seq, by))
			}
		}
	}
}

// checkJob checks one job, adds up its ready tasks by request, and returns how many of
// its tasks are open.
func (q *jobTable) checkJob(j *job, ready map[RequestID]int) (open int) {
	if e := j.eligible; (e.WaitingSince != 0) != (j.counts[roost.Idle] > 0) || e.WaitingSince != 0 && e.Since == 0 ||
		e.Waited < 0 {
		panic(fmt.Sprintf("queue: job %d has %d tasks that wait for a machine, and says %+v", j.seq,
			j.counts[roost.Idle], e))
	}
	checkGangs(j)
	q.checkService(j)
	checkBudget(j)
	q.checkDependencies(j)
	var counts [roost.Removed + 1]int32
	active, failed := 0, 0
	for i, s := range j.state {
		counts[s]++
		r := j.records.Get(i)
		live := r != nil && r.Live
		if live != s.IsActive() {
			panic(fmt.Sprintf("queue: %v is %v, and its attempt is live: %v", j.id(q.host).Task(i), s, live))
		}
		if live {
			active++
		}
		if s == roost.Completed && !j.records.HasSucceeded(i) {
			failed++
		}
		if j.class(i).ready.Has(i) != (s == roost.Idle) {
			panic(fmt.Sprintf("queue: %v is %v, and ready: %v", j.id(q.host).Task(i), s, s != roost.Idle))
		}
		if !s.IsFinal() {
			open++
		}
		if j.urgent[i] != nil && s != roost.Idle && !s.IsActive() ||
			j.class(i).oldAd == nil && j.class(i).spec.Now != j.whereNow(i) {
			panic(fmt.Sprintf("queue: %v is %v, and is to run now at %q, asked for at %q", j.id(q.host).Task(i), s,
				j.whereNow(i), j.class(i).spec.Now))
		}
	}
	if j.shared && !reflect.DeepEqual(j.jobExtras, noExtras()) {
		panic(fmt.Sprintf("queue: job %d has written into what it shares: %+v", j.seq, *j.jobExtras))
	}
	checkUserView(j)
	j.release().checkReleased()
	if counts != j.counts || active != int(j.active) || failed != int(j.failed) {
		panic(fmt.Sprintf("queue: job %d counts %v, %d active, %d failed, and says %v, %d, %d", j.seq, counts, active,
			failed, j.counts, j.active, j.failed))
	}
	for _, c := range j.classes {
		if (c.heapIndex >= 0) != (c.count > 0 && !c.full()) {
			panic(fmt.Sprintf("queue: a class of job %d with %d ready tasks stands at place %d", j.seq, c.count,
				c.heapIndex))
		}
	}
	for _, s := range j.shares {
		count := 0
		for _, c := range j.classes {
			if c.share == s {
				count += c.count
			}
		}
		if count != s.count || s.counted != s.most(j) {
			panic(fmt.Sprintf("queue: a share of job %d has %d tasks ready and room for %d, and says %d, %d", j.seq,
				count, j.startableTasks(), s.count, s.counted))
		}
		ready[s.request.ID] += s.counted
	}
	return open
}

// checkDemands adds up anew what each payer may hold.
func (q *quotaDemands) checkDemands() {
	q.updateDemands()
	sums := map[QuotaKey]QuotaDemand{}
	for seq, j := range q.jobs {
		if q.deferredJobs[seq] {
			continue // nobody has allowed it yet
		}
		if j.spec.Inside.Alloc != 0 {
			continue // its alloc set is counted
		}
		kinds := make([]demandKind, len(j.classes))
		for n, c := range j.classes {
			kinds[n].each = c.spec.Resources
		}
		for i, s := range j.state {
			if !s.IsFinal() {
				kinds[max(slices.Index(j.classes, j.class(i)), 0)].open++
			}
		}
		sums[j.payer()] = sums[j.payer()].Add(totalDemand(kinds,
			j.spec.MaxRunning*j.tasksPerIndex()).countGangOnce(&j.spec.JobSpec))
	}
	maps.DeleteFunc(sums, func(_ QuotaKey, d QuotaDemand) bool { return d == QuotaDemand{} })
	if !maps.Equal(sums, q.demands) {
		panic(fmt.Sprintf("queue: the demand is %v, and is told as %v", sums, q.demands))
	}
}

// checkDependencies checks that a job's tasks stand where what it waits for has them, and
// that rivals know each other.
func (q *jobTable) checkDependencies(j *job) {
	byIndex := j.waitsByIndex()
	if j.counts[roost.Blocked] > j.waitingRestarts && !j.isBlocked() && !byIndex ||
		j.counts[roost.Idle] > 0 && j.isBlocked() {
		panic(fmt.Sprintf("queue: job %d is blocked: %v, and counts %v", j.seq, j.isBlocked(), j.counts))
	}
	for i, state := range j.state {
		if byIndex && state == roost.Blocked && !waitsForRestart(j, i) && !isTaskBlocked(q, j, i) {
			panic(fmt.Sprintf("queue: task %d of job %d waits for one of its index, which has succeeded", i, j.seq))
		}
	}
	if j.expectedBefore < 0 || j.expectedSync < 0 {
		panic(fmt.Sprintf("queue: job %d waits for %d and %d jobs", j.seq, j.expectedBefore, j.expectedSync))
	}
	begun, all := false, true
	for _, seq := range j.runOneSet {
		o := q.jobs[seq]
		all = all && o != nil
		begun = begun || o != nil && o.hasBegun()
		if o != nil && !o.isFinal() && !slices.Contains(o.runOneSet, j.seq) && !j.isFinal() {
			panic(fmt.Sprintf("queue: job %d is a rival of %d, and that not of it", j.seq, seq))
		}
	}
	if all && begun != j.runOneStarted && !j.isFinal() {
		panic(fmt.Sprintf("queue: job %d with the rivals %v is stopped: %v, and a rival has begun: %v", j.seq,
			j.runOneSet, j.runOneStarted, begun))
	}
}

// checkStateTotals panics when they are not what the jobs have.
func (q *Queue) checkStateTotals() {
	var want stateTotals
	for _, j := range q.jobs {
		want.add(j, 1)
	}
	if want != *q.stateTotals {
		panic(fmt.Sprintf("queue: tasks are in the states %v, and %v are counted", want, *q.stateTotals))
	}
}
