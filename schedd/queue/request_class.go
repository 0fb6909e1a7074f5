package queue

import (
	"container/heap"
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue/indexset"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// formClasses parts a job's tasks into classes, packs its columns and drops what is kept
// twice.
func (q *requestIndex) formClasses(j *job) {
	var split []jobad.TaskColumn
	if len(j.submission.columns) > 0 || len(j.columns) > 0 {
		j.ownExtras().columns = make(map[string]*packedColumn, len(j.submission.columns))
	}
	for _, c := range j.submission.columns {
		j.columns[c.Name] = packColumn(c.Values)
		if jobad.IsOverridable(c.Name) {
			split = append(split, c)
		}
	}
	if len(split) == 0 && j.tasksPerIndex() == 1 {
		p := &j.spec.JobSpec
		if p.Resources.GPUs == 0 && p.Resources.GPUMemory != 0 { // which a request without GPUs does not name
			own := *p
			p = &own
		}
		q.addClass(j, p)
		return
	}
	j.ownExtras().classByValues = map[string]int{}
	j.classOf = make([]uint16, len(j.state))
	for i := range j.state {
		key := j.columnKey(i)
		n, ok := j.classByValues[key]
		if !ok {
			p := j.spec.JobSpec
			for _, c := range split {
				if err := p.OverrideAttr(c.Name, c.Values[i]); err != nil {
					panic(fmt.Sprintf("queue: job %d: %v", j.seq, err))
				}
			}
			if j.tasksPerIndex() > 1 {
				p.ArrayMPIGang = i / j.tasksPerIndex()
			}
			n = len(j.classes)
			j.classByValues[key] = n
			q.addClass(j, &p)
		}
		j.classOf[i] = uint16(n)
	}
}

// columnKey is what tells a task from others of its job that ask for something else.
func (j *job) columnKey(i int) string {
	var key strings.Builder
	if j.tasksPerIndex() > 1 {
		fmt.Fprintf(&key, "%d ", i/j.tasksPerIndex())
	}
	for _, c := range j.submission.columns {
		if jobad.IsOverridable(c.Name) {
			fmt.Fprintf(&key, "%q ", c.Values[i])
		}
	}
	return key.String()
}

// addClass adds a class of tasks that want what the plan says.
func (q *requestIndex) addClass(j *job, p *jobad.JobSpec) {
	r := q.joinSharedRequest(j, p)
	j.classes = append(j.classes, &taskClass{job: j, request: r, share: j.readyIn(r), spec: p, heapIndex: -1})
}

// readyIn is what the job contributes to a request.
func (j *job) readyIn(r *Request) *jobReady {
	if s := j.shareByRequest[r]; s != nil {
		return s
	}
	if i := slices.IndexFunc(j.shares, func(s *jobReady) bool {
		return s.request == r
	}); i >= 0 && j.shareByRequest == nil {
		return j.shares[i]
	}
	s := &jobReady{request: r}
	if j.shares = append(j.shares, s); j.tasksPerIndex() > 1 {
		if j.ownExtras(); j.shareByRequest == nil {
			j.shareByRequest = map[*Request]*jobReady{}
		}
		j.shareByRequest[r] = s
	}
	return s
}

// leaveRequests takes what is ready of a job out of its requests.
func (q *requestIndex) leaveRequests(j *job) {
	for _, c := range j.classes {
		if c.heapIndex >= 0 {
			heap.Remove(&c.request.classes, c.heapIndex)
			q.markDirty(c.request)
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
// runs, or is of another revision, keeps the class with which it began, and so its
// request: the machine was claimed for that, and nothing else may be run on that claim.
func (q *requestIndex) reclassify(j *job, was string) {
	old, oldOf := j.classes, j.classOf
	j.classes, j.shares = nil, nil
	if x := j.jobExtras; !x.shared {
		x.shareByRequest, x.classOf, x.classByValues = nil, nil, nil
	}
	q.formClasses(j)
	retained := map[*taskClass]uint16{}
	if j.active > 0 || j.update != nil {
		before := &oldAd{ad: was}
		for i, s := range j.state {
			if !s.IsActive() && (s.IsFinal() || !revisionsOf(j).retainsRevision(i)) {
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
	if size, loose := j.spec.StartTogether(j.submission.count, j.submission.columns); size != j.gangs.size ||
		loose != j.gangs.firstStartOnly ||
		size > 0 && len(j.gangs.idleTasks) != len(j.state)/size {
		j.ownExtras().gangs = gangState{}
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
func (q *requestIndex) restoreClass(j *job, c *taskClass) uint16 {
	c.share, c.ready, c.count, c.open, c.twin = j.readyIn(c.request), indexset.Set{}, 0, 0, nil
	j.classes = append(j.classes, c)
	return uint16(len(j.classes) - 1)
}

// leaveRequest takes a class out of its request, which is gone with its last one.
func (q *requestIndex) leaveRequest(c *taskClass) {
	if c.request.members--; c.request.members == 0 {
		q.dirtyRequests[c.request.ID] = true
		delete(q.requests, c.request.ID)
		delete(q.requestByKey, c.request.key)
	}
}

// taskClassNames has each task of a job name its class.
func (j *job) taskClassNames() []uint16 {
	if len(j.classOf) == 0 {
		j.ownExtras().classOf = make([]uint16, len(j.state))
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
func (q *requestIndex) pinOldClass(j *job, i int, before *oldAd) {
	ad, err := classad.Parse(before.ad)
	if err != nil {
		panic(err)
	}
	p, err := jobad.ReadSpec(ad)
	if err != nil {
		panic(err)
	}
	for name, values := range j.columns {
		if jobad.IsOverridable(name) {
			if err := p.OverrideAttr(name, values.at(i)); err != nil {
				panic(err)
			}
		}
	}
	if j.tasksPerIndex() > 1 {
		p.ArrayMPIGang = i / j.tasksPerIndex()
	}
	r := j.records.Own(i)
	p.NeedsRestore = r != nil && r.Checkpoints != nil && r.Checkpoints.OriginSequence != 0 && p.Checkpoints != nil &&
		!p.Checkpoints.Self
	if m := r.NewestImage(); p.NeedsRestore && m != nil {
		p.SlotUser = m.SlotUser
	}
	p.Now = j.whereNow(i)
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
func (q *requestIndex) assignClass(j *job, i int, to uint16) {
	c, ready := j.class(i), j.class(i).ready.Has(i)
	q.setReady(j, i, false)
	if !j.state[i].IsFinal() {
		c.open--
		j.classes[to].open++
	}
	j.taskClassNames()[i] = to
	q.setReady(j, i, ready)
}

// updateRestoreClass puts a task among those that want a machine which can restore
// images, or back. A task that is being run stays where it was when it was assigned.
func (q *requestIndex) updateRestoreClass(j *job, i int) {
	r := j.records.Own(i)
	restores := false
	switch {
	case r == nil || j.spec.Checkpoints == nil || j.spec.Checkpoints.Self: // files go anywhere
	case r.Live:
		restores = r.Checkpoints != nil && r.Checkpoints.OriginSequence != 0
	default:
		restores = r.NewestImage() != nil
	}
	slot := false
	if restores {
		m := r.NewestImage()
		if r.Live && r.Checkpoints.FindImage(r.Checkpoints.OriginSequence) != nil {
			m = r.Checkpoints.FindImage(r.Checkpoints.OriginSequence)
		}
		slot = m != nil && m.SlotUser
	}
	c := j.class(i)
	if c.oldAd != nil {
		if r != nil && r.Live || revisionsOf(j).retainsRevision(i) {
			return
		}
		q.assignClass(j, i, j.idleClass(i)) // it runs no more, and is what its job is now
		c = j.class(i)
	}
	if now := j.whereNow(i); c.spec.NeedsRestore != restores || c.spec.SlotUser != slot || c.spec.Now != now {
		q.assignClass(j, i, q.restoreClassOf(j, c, restores, slot, now))
	}
}

// restoreClassOf finds or makes the class like another that differs in what it restores,
// and where it runs now.
func (q *requestIndex) restoreClassOf(j *job, c *taskClass, restores, slot bool, now string) uint16 {
	first := c
	if c.twin != nil {
		first = c.twin
	}
	for n, other := range j.classes {
		if (other == first || other.twin == first) && other.spec.NeedsRestore == restores &&
			other.spec.SlotUser == slot && other.spec.Now == now {
			return uint16(n)
		}
	}
	p := *c.spec
	p.NeedsRestore, p.SlotUser, p.Now = restores, slot, now
	q.addClass(j, &p)
	j.classes[len(j.classes)-1].twin = first
	return uint16(len(j.classes) - 1)
}
