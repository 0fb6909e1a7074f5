package queue

import (
	"container/heap"
	"fmt"
	"maps"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// altered folds an alteration in.
func (q *Queue) altered(j *job, e Event) {
	changes, err := classad.Parse(e.Submission.Ad)
	if err != nil {
		panic(fmt.Sprintf("queue: the alteration of job %d: %v", j.seq, err))
	}
	ad := q.parsed(j)
	amend(ad, changes)
	p, err := readPlan(ad)
	if err != nil {
		panic(fmt.Sprintf("queue: the altered ad of job %d: %v", j.seq, err))
	}
	q.uncount(j)
	_, said := changes.Lookup(roost.AttrDependsOn)
	if said {
		q.withdraw(j)
	}
	q.unwait(j)
	q.ungroup(j)
	limited := j.runs() && (p.walltime != j.plan.walltime || p.bounds.CPU != j.plan.bounds.CPU)
	was, sub := j.sub.Ad, *j.sub
	sub.Ad = ad.String()
	if said {
		sub.Waits = e.Submission.Waits
	}
	if n := e.Submission.Count; n > 0 {
		sub.Count, sub.Columns = n, e.Submission.Columns
		q.resize(j, n)
		indexes, _ := ad.Str(roost.AttrArrayIndex)
		j.indexes = indexesOf(indexes, n/p.stride())
	}
	if len(e.Submission.Secret) > 0 {
		sub.Secret = e.Submission.Secret
	}
	if e.Submission.Unasked {
		q.unasked[j.seq] = true
	}
	j.sub, j.plan, j.ad = &sub, p, nil
	j.altered, _ = ad.Int(roost.AttrAlterations)
	q.regroup(j, was)
	if said {
		q.depend(j)
		q.register(j)
	}
	q.awaits(j, e)
	for i, s := range j.state {
		if limited && s.Active() {
			q.limits = append(q.limits, q.limit(j, i))
		}
	}
}

// uncount takes a job out of its payer's sum, which may be another's afterwards.
func (q *Queue) uncount(j *job) {
	if j.told == (Demand{}) {
		return
	}
	who := j.payer()
	q.demanded[who] = true
	if sum := q.demands[who].Sub(j.told); sum == (Demand{}) {
		delete(q.demands, who)
	} else {
		q.demands[who] = sum
	}
	j.told = Demand{}
}

// resize gives a fresh job another number of tasks.
func (q *Queue) resize(j *job, n int) {
	s := j.state[0]
	maps.DeleteFunc(j.urgent, func(i int, _ *runOrder) bool { return i >= n })
	q.countOpen(j, n-len(j.state))
	q.changes++
	j.counts[s] = n
	j.state = slices.Repeat([]roost.TaskState{s}, n)
	if known := j.book.ref(0); known != 0 {
		j.book.refs = slices.Repeat([]ref{known}, n)
		j.book.notes.items[known.place()].tasks = n
	} else {
		j.book.refs = nil
	}
}

// awaits finds out anew whether a job waits for others or for its time.
func (q *Queue) awaits(j *job, e Event) {
	j.due = j.plan.startAfter == 0 || j.plan.startAfter <= e.Time/1e9
	for _, w := range j.waits {
		q.related(j, w.Job)
	}
	for _, other := range j.rivals {
		q.related(j, other)
	}
	if !j.due {
		q.timed[j.seq] = true
	}
	q.loosen(j)
}

// past is a job's ad as it was when tasks began that still run.
type past struct {
	ad     string
	parsed *classad.Ad // once somebody has asked
}

// ungroup takes what is ready of a job out of its requests.
func (q *Queue) ungroup(j *job) {
	for _, c := range j.classes {
		if c.place >= 0 {
			heap.Remove(&c.request.classes, c.place)
			q.touch(c.request)
		}
		if c.plan == &j.plan { // which is about to become another
			own := j.plan
			c.plan = &own
		}
	}
	for _, s := range j.shares {
		if s.told != 0 {
			s.request.Ready -= s.told
			q.touch(s.request)
		}
	}
}

// regroup parts the tasks of a job into classes anew, after its plan has changed. What runs keeps the class with which it began, and so its request: the
// machine was claimed for that, and nothing else may be run on that claim.
func (q *Queue) regroup(j *job, was string) {
	old, oldOf := j.classes, j.classOf
	j.classes, j.shares, j.shareBy, j.classOf, j.sorts = nil, nil, nil, nil, nil
	q.classify(j)
	kept := map[*class]uint16{}
	if j.active > 0 {
		before := &past{ad: was}
		for i, s := range j.state {
			if !s.Active() {
				continue
			}
			c := old[0]
			if len(oldOf) > 0 {
				c = old[oldOf[i]]
			}
			n, ok := kept[c]
			if !ok {
				if c.past == nil {
					c.past = before
				}
				n = q.keepClass(j, c)
				kept[c] = n
			}
			j.split()[i] = n
		}
	}
	for _, c := range old {
		if _, ok := kept[c]; !ok {
			q.leave(c)
		}
	}
	for i, s := range j.state {
		if !s.Final() {
			j.class(i).open++
		}
	}
	if size, loose := together(&j.plan, j.sub); size != j.gangs.size || loose != j.gangs.loose || size > 0 && len(j.gangs.idle) != len(j.state)/size {
		j.gangs = gangs{}
		j.form()
	}
	q.together(j, func() {
		for i, s := range j.state {
			q.setReady(j, i, s == roost.Idle)
			q.reclass(j, i)
		}
	})
}

// keepClass adds a class again that a job had, without any task in it.
func (q *Queue) keepClass(j *job, c *class) uint16 {
	c.share, c.ready, c.count, c.open, c.twin = j.shareOf(c.request), bitmap{}, 0, 0, nil
	j.classes = append(j.classes, c)
	return uint16(len(j.classes) - 1)
}

// leave takes a class out of its request, which is gone with its last one.
func (q *Queue) leave(c *class) {
	if c.request.members--; c.request.members == 0 {
		q.dirty[c.request.ID] = true
		delete(q.requests, c.request.ID)
		delete(q.byKey, c.request.key)
	}
}

// split has each task of a job name its class.
func (j *job) split() []uint16 {
	if len(j.classOf) == 0 {
		j.classOf = make([]uint16, len(j.state))
	}
	return j.classOf
}

// proper is the class to which a task belongs when it does not run.
func (j *job) proper(i int) uint16 {
	if len(j.sorts) == 0 {
		return 0
	}
	return uint16(j.sorts[j.sort(i)])
}

// pin gives a task of a restored job, which runs, the class with which it began. Its place is in the queue's own snapshot: what makes no sense there panics.
func (q *Queue) pin(j *job, i int, before *past) {
	ad, err := classad.Parse(before.ad)
	if err != nil {
		panic(err)
	}
	p, err := readPlan(ad)
	if err != nil {
		panic(err)
	}
	for name, values := range j.columns {
		if slices.Contains(overriding, name) {
			if err := p.override(name, values.at(i)); err != nil {
				panic(err)
			}
		}
	}
	if j.stride() > 1 {
		p.subjob = i / j.stride()
	}
	r := j.book.written(i)
	p.restores = r != nil && r.saves != nil && r.saves.from != 0 && p.saving != nil && !p.saving.Self
	if m := r.newest(); p.restores && m != nil {
		p.slot = m.Slot
	}
	p.now = j.whereNow(i)
	request := q.join(j.sub, j.id(q.host), &p)
	n := slices.IndexFunc(j.classes, func(c *class) bool { return c.past == before && c.request == request })
	if n < 0 {
		j.classes = append(j.classes, &class{job: j, request: request, share: j.shareOf(request), plan: &p, place: -1, past: before})
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
	if !j.state[i].Final() {
		c.open--
		j.classes[to].open++
	}
	j.split()[i] = to
	q.setReady(j, i, ready)
}
