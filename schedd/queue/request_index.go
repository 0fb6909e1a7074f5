package queue

import (
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// requestIndex is the requests of the queue, and the ready tasks of each.
type requestIndex struct {
	*jobTable
	*runtimePredictor
	requests      map[RequestID]*Request
	requestByKey  map[string]*Request
	lastRequest   RequestID
	dirtyRequests map[RequestID]bool // of which something has changed
	// requests that jobs made which share their spec and their submission: the text of
	// the key takes longer to write than all else that a restart does for a job
	requestBySpec map[requestSource]*Request
	readyDeferred *job // its tasks change together: they are counted afterwards; nil: none
}

func newRequestIndex(jobs *jobTable, runtimes *runtimePredictor) *requestIndex {
	return &requestIndex{jobTable: jobs, runtimePredictor: runtimes, requests: map[RequestID]*Request{},
		requestByKey: map[string]*Request{}, requestBySpec: map[requestSource]*Request{},
		dirtyRequests: map[RequestID]bool{}}
}

// TakeDirtyRequests drains the requests of which something has changed.
func (q *requestIndex) TakeDirtyRequests() []RequestID {
	ids := takeAll(&q.dirtyRequests)
	for _, id := range ids {
		if r := q.requests[id]; r != nil {
			r.dirty = false
		}
	}
	return ids
}

// Requests lists the ids of all requests.
func (q *requestIndex) Requests() []RequestID { return slices.Sorted(maps.Keys(q.requests)) }

// Request returns a request as it is now.
func (q *requestIndex) Request(id RequestID) (*Request, bool) {
	r, ok := q.requests[id]
	if ok && len(r.classes) > 0 {
		top := r.classes[0].job
		r.PredictedRuntime = q.predictedRuntime(r)
		r.Priority, r.OldestSubmit = top.spec.Priority, time.Unix(0, top.orderTime)
		r.PriorityTasks = min(r.classes.atTopPriority(), r.Ready)
		if r.classes[0].spec.NeedsRestore {
			// what had to leave a machine goes on before the rest of its job begins
			r.OldestSubmit = r.OldestSubmit.Add(-1)
		}
	}
	return r, ok
}

// requestSource is what the request of a class depends on, where it does not depend on
// the job.
type requestSource struct {
	spec       *jobad.JobSpec
	submission *jobSubmission
}

// maxRequestSources bounds the sources that are remembered; at the bound the list starts
// again empty.
const maxRequestSources = 1 << 12

// joinSharedRequest finds or makes the request of a class of a job.
func (q *requestIndex) joinSharedRequest(j *job, p *jobad.JobSpec) *Request {
	if p != &j.spec.JobSpec || len(j.submission.columns) > 0 || p.RequestIsOfJob() {
		return q.joinRequest(j.submission, j.id(q.host), p)
	}
	source := requestSource{p, j.submission}
	r := q.requestBySpec[source]
	if r != nil && r.members > 0 {
		r.members++
		return r
	}
	if len(q.requestBySpec) >= maxRequestSources {
		clear(q.requestBySpec)
	}
	r = q.joinRequest(j.submission, j.id(q.host), p)
	q.requestBySpec[source] = r
	return r
}

// joinRequest finds or makes the request of a class.
func (q *requestIndex) joinRequest(s *jobSubmission, job roost.JobID, p *jobad.JobSpec) *Request {
	if p.Resources.GPUs == 0 && p.Resources.GPUMemory != 0 {
		p.Resources.GPUMemory = 0 // it was for those of the job's tasks that have GPUs
	}
	key := p.RequestKey(s.owner, s.uid, s.gid, job)
	r := q.requestByKey[key]
	if r == nil {
		size, _ := p.StartTogether(s.count, s.columns)
		q.lastRequest++
		r = &Request{
			ID: q.lastRequest, Owner: s.owner, UID: s.uid, GID: s.gid, Group: p.Group, Queue: p.Queue, Band: p.Band,
			Resources: p.Resources, Class: p.AppClass, JobLease: p.Lease, Ports: p.Ports,
			Now: p.Now != "", Service: p.Service, Walltime: p.Walltime, Reservation: p.Reservation,
			IsAlloc: p.IsAlloc, Inside: p.Inside,
			gangSize: size,
			Ad:       p.RequestAd(s.owner, s.uid, job), key: key,
		}
		if p.MPIGang {
			r.mpiJob, r.mpiGang = job.Seq, p.ArrayMPIGang
		}
		q.requestByKey[key], q.requests[r.ID] = r, r
	}
	r.members++
	return r
}

// markDirty notes that a request has changed.
func (q *requestIndex) markDirty(r *Request) {
	if !r.dirty {
		r.dirty, q.dirtyRequests[r.ID] = true, true
	}
}

// EachReady calls f with every request that has tasks which could start now. first is the
// job that comes first there, which has waited since a time in unix nanoseconds. The
// order is not defined.
func (q *requestIndex) EachReady(f func(r *Request, first roost.JobID, waitingSince int64)) {
	for _, r := range q.requests {
		if r.Ready > 0 && len(r.classes) > 0 {
			first := r.classes[0].job
			f(r, first.id(q.host), first.eligible.WaitingSince)
		}
	}
}
