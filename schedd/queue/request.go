package queue

import (
	"container/heap"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// RequestID names a request within one start of the schedd.
type RequestID uint64

// Request is an equivalence class of tasks (DESIGN §3): a claim that serves one of them serves all.
type Request struct {
	ID        RequestID
	Owner     string
	UID, GID  uint32
	Group     string
	Band      roost.Band
	Resources roost.Resources
	Lease     time.Duration // 0: as the schedd has it
	Ad        string        // Requirements, Rank and what they and machines look at
	Ready     int           // tasks that could start now
	Priority  int           // the highest among them
	Oldest    time.Time     // when the job that is next was submitted

	key     requestKey
	waiting classHeap
	members int // classes of jobs in the queue
}

// requestKey tells requests apart.
type requestKey struct {
	owner, group       string
	uid, gid           uint32
	band               roost.Band
	res                roost.Resources
	requirements, rank string
	transfer, domain   string
	lease              time.Duration
}

// class is the tasks of a job that make the same request. It waits in the request's heap while one of them may start.
type class struct {
	job     *job
	request *Request
	plan    override
	ready   bitmap
	counted int // what it adds to the request's Ready
	place   int // in the request's heap, -1 outside
}

// classHeap orders classes by priority, then by age.
type classHeap []*class

func (h classHeap) Len() int { return len(h) }
func (h classHeap) Less(i, k int) bool {
	a, b := h[i].job, h[k].job
	if a.plan.priority != b.plan.priority {
		return a.plan.priority > b.plan.priority
	}
	if a.seq != b.seq {
		return a.seq < b.seq
	}
	return h[i].ready.first() < h[k].ready.first()
}
func (h classHeap) Swap(i, k int) {
	h[i], h[k] = h[k], h[i]
	h[i].place, h[k].place = i, k
}
func (h *classHeap) Push(x any) {
	c := x.(*class)
	c.place = len(*h)
	*h = append(*h, c)
}
func (h *classHeap) Pop() any {
	old := *h
	c := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	c.place = -1
	return c
}

// Requests lists the ids of all requests.
func (q *Queue) Requests() []RequestID { return slices.Sorted(maps.Keys(q.requests)) }

// Request returns a request as it is now. It is not to be changed, and not to be kept over an Apply.
func (q *Queue) Request(id RequestID) (*Request, bool) {
	r, ok := q.requests[id]
	return r, ok
}

// RequestOf returns the request that a task belongs to.
func (q *Queue) RequestOf(t roost.TaskID) (*Request, bool) {
	j, err := q.task(t)
	if err != nil {
		return nil, false
	}
	return j.class(t.Index).request, true
}

// Next returns the task of a request that is to run next: of the highest priority, then the oldest job, then the lowest index.
func (q *Queue) Next(id RequestID) (roost.TaskID, bool) {
	r := q.requests[id]
	if r == nil || len(r.waiting) == 0 {
		return roost.TaskID{}, false
	}
	c := r.waiting[0]
	return c.job.id(q.host).Task(c.ready.first()), true
}

// join finds or makes the request of a class.
func (q *Queue) join(j *job, o override) *Request {
	p, s := &j.plan, j.sub
	key := requestKey{s.Owner, p.group, s.UID, s.GID, p.band, o.resources, o.requirements, o.rank, p.transfer, p.domain, p.lease}
	r := q.alike[key]
	if r == nil {
		q.lastRequest++
		r = &Request{
			ID: q.lastRequest, Owner: s.Owner, UID: s.UID, GID: s.GID, Group: p.group, Band: p.band, Resources: o.resources, Lease: p.lease,
			Ad: requestAd(&key), key: key,
		}
		q.alike[key], q.requests[r.ID] = r, r
	}
	r.members++
	return r
}

// leave takes a job's classes out of their requests, and forgets requests that nobody makes any more.
func (q *Queue) leave(j *job) {
	for _, c := range j.classes {
		if c.request.members--; c.request.members == 0 {
			delete(q.requests, c.request.ID)
			delete(q.alike, c.request.key)
			q.dirty[c.request.ID] = struct{}{}
		}
	}
}

// requestAd is what machines are matched with.
func requestAd(k *requestKey) string {
	ad := classad.New()
	ad.SetString(roost.AttrMyType, "Job")
	ad.SetString(roost.AttrOwner, k.owner)
	ad.SetInt(roost.AttrOwnerUID, int64(k.uid))
	ad.SetString(roost.AttrGroup, k.group)
	ad.SetString(roost.AttrBand, k.band.String())
	ad.SetReal(roost.AttrRequestCpus, k.res.CPU.Cores())
	ad.SetInt(roost.AttrRequestMemory, int64((k.res.Memory+roost.MiB-1)/roost.MiB))
	ad.SetInt(roost.AttrRequestDisk, int64((k.res.Disk+roost.KiB-1)/roost.KiB))
	ad.SetInt(roost.AttrRequestGpus, int64(k.res.GPUs))
	if k.domain != "" {
		ad.SetString(roost.AttrFileSystemDomain, k.domain)
	}
	requirements := k.requirements
	if requirements == "" {
		requirements = "true"
	}
	if k.transfer == "never" { // it needs its files where they are
		requirements = "(" + requirements + ") && TARGET." + roost.AttrFileSystemDomain + " == MY." + roost.AttrFileSystemDomain
	}
	if err := ad.SetExpr(roost.AttrRequirements, requirements); err != nil {
		illegal("requirements %q: %v", requirements, err)
	}
	if k.rank != "" {
		if err := ad.SetExpr(roost.AttrRank, k.rank); err != nil {
			illegal("rank %q: %v", k.rank, err)
		}
	}
	return ad.String()
}

// setReady changes whether a task could start.
func (q *Queue) setReady(j *job, i int, ready bool) {
	c := j.class(i)
	if ready {
		c.ready.set(i)
	} else {
		c.ready.clear(i)
	}
	q.settle(c)
}

// settle brings a class's place in its request's heap, and what it adds there, in line with what it has become.
func (q *Queue) settle(c *class) {
	r, count := c.request, c.ready.count
	if limit := c.job.plan.maxRunning; limit > 0 {
		count = max(min(count, limit-c.job.active), 0)
	}
	r.Ready += count - c.counted
	switch {
	case count > 0 && c.place < 0:
		heap.Push(&r.waiting, c)
	case count == 0 && c.place >= 0:
		heap.Remove(&r.waiting, c.place)
	case count > 0 && len(c.job.classes) > 1:
		heap.Fix(&r.waiting, c.place) // its lowest index may have changed
	case count == c.counted:
		return
	}
	c.counted = count
	if len(r.waiting) > 0 {
		top := r.waiting[0].job
		r.Priority, r.Oldest = top.plan.priority, time.Unix(0, top.submitted)
	}
	q.dirty[r.ID] = struct{}{}
}
