package queue

import (
	"container/heap"
	"fmt"
	"maps"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// applyAltered folds an alteration in.
func (q *Queue) applyAltered(j *job, e JobEvent) {
	changes, err := classad.Parse(e.Submission.Ad)
	if err != nil {
		panic(fmt.Sprintf("queue: the alteration of job %d: %v", j.seq, err))
	}
	ad := q.parsedAd(j)
	applyChanges(ad, changes)
	p, err := readJobSpec(ad)
	if err != nil {
		panic(fmt.Sprintf("queue: the altered ad of job %d: %v", j.seq, err))
	}
	q.removeDemand(j)
	_, stated := changes.Lookup(roost.AttrDependsOn)
	if stated {
		q.withdrawDependencies(j)
	}
	q.clearDependencies(j)
	q.leaveRequests(j)
	limited := j.runsWhole() && (p.walltime != j.spec.walltime || p.processLimits.CPU != j.spec.processLimits.CPU)
	was, sub := j.submission.Ad, *j.submission
	sub.Ad = ad.String()
	if stated {
		sub.Dependencies = e.Submission.Dependencies
	}
	if n := e.Submission.Count; n > 0 {
		sub.Count, sub.Columns = n, e.Submission.Columns
		q.resizeJob(j, n)
		indexes, _ := ad.Str(roost.AttrArrayIndex)
		j.indexes = indexesOf(indexes, n/p.tasksPerIndex())
	}
	if len(e.Submission.Secret) > 0 {
		sub.Secret = e.Submission.Secret
	}
	if e.Submission.DeferredAdmission {
		q.deferredJobs[j.seq] = true
	}
	j.submission, j.spec, j.ad = &sub, p, nil
	j.alterations, _ = ad.Int(roost.AttrAlterations)
	q.reclassify(j, was)
	if stated {
		q.applyOwnDependencies(j)
		q.applyToOthers(j)
	}
	q.updateDependencies(j, e)
	for i, s := range j.state {
		if limited && s.IsActive() {
			q.changedLimits = append(q.changedLimits, q.markLimits(j, i))
		}
	}
}

// removeDemand takes a job out of its payer's sum, which may be another's afterwards.
func (q *Queue) removeDemand(j *job) {
	if j.countedDemand == (QuotaDemand{}) {
		return
	}
	who := j.payer()
	q.changedDemands[who] = true
	if sum := q.demands[who].Sub(j.countedDemand); sum == (QuotaDemand{}) {
		delete(q.demands, who)
	} else {
		q.demands[who] = sum
	}
	j.countedDemand = QuotaDemand{}
}

// resizeJob gives a fresh job another number of tasks.
func (q *Queue) resizeJob(j *job, n int) {
	s := j.state[0]
	maps.DeleteFunc(j.urgent, func(i int, _ *runOrder) bool { return i >= n })
	q.countOpen(j, n-len(j.state))
	q.changes++
	j.counts[s] = n
	j.state = slices.Repeat([]roost.TaskState{s}, n)
	if known := j.records.setRef(0); known != 0 {
		j.records.refs = slices.Repeat([]recordRef{known}, n)
		j.records.sharedRecords.items[known.index()].tasks = n
	} else {
		j.records.refs = nil
	}
}

// updateDependencies finds out anew whether a job waits for others or for its time.
func (q *Queue) updateDependencies(j *job, e JobEvent) {
	j.startTimeReached = j.spec.startAfter == 0 || j.spec.startAfter <= e.Time/1e9
	for _, w := range j.dependencies {
		q.addDependent(j, w.Job)
	}
	for _, other := range j.runOneSet {
		q.addDependent(j, other)
	}
	if !j.startTimeReached {
		q.startTimes[j.seq] = true
	}
	q.updateBlocked(j)
}

// oldAd is a job's ad as it was when tasks began that still run.
type oldAd struct {
	ad     string
	parsed *classad.Ad // once somebody has asked
}

// leaveRequests takes what is ready of a job out of its requests.
func (q *Queue) leaveRequests(j *job) {
	for _, c := range j.classes {
		if c.heapIndex >= 0 {
			heap.Remove(&c.request.classes, c.heapIndex)
			q.markDirty(c.request)
		}
		if c.spec == &j.spec { // which is about to become another
			own := j.spec
			c.spec = &own
		}
	}
	for _, s := range j.shares {
		if s.counted != 0 {
			s.request.Ready -= s.counted
			q.markDirty(s.request)
		}
	}
}

// reclassify parts the tasks of a job into classes anew, after its plan has changed. What
// runs keeps the class with which it began, and so its request: the machine was claimed
// for that, and nothing else may be run on that claim.
func (q *Queue) reclassify(j *job, was string) {
	old, oldOf := j.classes, j.classOf
	j.classes, j.shares, j.shareByRequest, j.classOf, j.classByValues = nil, nil, nil, nil, nil
	q.formClasses(j)
	retained := map[*taskClass]uint16{}
	if j.active > 0 {
		before := &oldAd{ad: was}
		for i, s := range j.state {
			if !s.IsActive() {
				continue
			}
			c := old[0]
			if len(oldOf) > 0 {
				c = old[oldOf[i]]
			}
			n, ok := retained[c]
			if !ok {
				if c.oldAd == nil {
					c.oldAd = before
				}
				n = q.restoreClass(j, c)
				retained[c] = n
			}
			j.taskClassNames()[i] = n
		}
	}
	for _, c := range old {
		if _, ok := retained[c]; !ok {
			q.leaveRequest(c)
		}
	}
	for i, s := range j.state {
		if !s.IsFinal() {
			j.class(i).open++
		}
	}
	if size, loose := gangSize(&j.spec, j.submission); size != j.gangs.size || loose != j.gangs.firstStartOnly ||
		size > 0 && len(j.gangs.idleTasks) != len(j.state)/size {
		j.gangs = gangState{}
		j.formGangs()
	}
	q.batchReady(j, func() {
		for i, s := range j.state {
			q.setReady(j, i, s == roost.Idle)
			q.updateRestoreClass(j, i)
		}
	})
}

// restoreClass adds a class again that a job had, without any task in it.
func (q *Queue) restoreClass(j *job, c *taskClass) uint16 {
	c.share, c.ready, c.count, c.open, c.twin = j.readyIn(c.request), indexSet{}, 0, 0, nil
	j.classes = append(j.classes, c)
	return uint16(len(j.classes) - 1)
}

// leaveRequest takes a class out of its request, which is gone with its last one.
func (q *Queue) leaveRequest(c *taskClass) {
	if c.request.members--; c.request.members == 0 {
		q.dirtyRequests[c.request.ID] = true
		delete(q.requests, c.request.ID)
		delete(q.requestByKey, c.request.key)
	}
}

// taskClassNames has each task of a job name its class.
func (j *job) taskClassNames() []uint16 {
	if len(j.classOf) == 0 {
		j.classOf = make([]uint16, len(j.state))
	}
	return j.classOf
}

// idleClass is the class to which a task belongs when it does not run.
func (j *job) idleClass(i int) uint16 {
	if len(j.classByValues) == 0 {
		return 0
	}
	return uint16(j.classByValues[j.columnKey(i)])
}

// pinOldClass gives a task of a restored job, which runs, the class with which it began.
// Its place is in the queue's own snapshot: what makes no sense there panics.
func (q *Queue) pinOldClass(j *job, i int, before *oldAd) {
	ad, err := classad.Parse(before.ad)
	if err != nil {
		panic(err)
	}
	p, err := readJobSpec(ad)
	if err != nil {
		panic(err)
	}
	for name, values := range j.columns {
		if slices.Contains(overridableAttrs, name) {
			if err := p.overrideAttr(name, values.at(i)); err != nil {
				panic(err)
			}
		}
	}
	if j.tasksPerIndex() > 1 {
		p.arrayMPIGang = i / j.tasksPerIndex()
	}
	r := j.records.own(i)
	p.needsRestore = r != nil && r.checkpoints != nil && r.checkpoints.originSequence != 0 && p.checkpoints != nil &&
		!p.checkpoints.Self
	if m := r.newestImage(); p.needsRestore && m != nil {
		p.slotUser = m.SlotUser
	}
	p.now = j.whereNow(i)
	request := q.joinRequest(j.submission, j.id(q.host), &p)
	n := slices.IndexFunc(j.classes, func(c *taskClass) bool { return c.oldAd == before && c.request == request })
	if n < 0 {
		j.classes = append(j.classes, &taskClass{job: j, request: request, share: j.readyIn(request), spec: &p,
			heapIndex: -1, oldAd: before})
		n = len(j.classes) - 1
	} else {
		request.members--
	}
	q.assignClass(j, i, uint16(n))
}

// assignClass puts a task into a class of its job.
func (q *Queue) assignClass(j *job, i int, to uint16) {
	c, ready := j.class(i), j.class(i).ready.has(i)
	q.setReady(j, i, false)
	if !j.state[i].IsFinal() {
		c.open--
		j.classes[to].open++
	}
	j.taskClassNames()[i] = to
	q.setReady(j, i, ready)
}
