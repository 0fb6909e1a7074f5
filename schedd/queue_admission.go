package schedd

import (
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// A job goes to a queue, if administrators have made any: the one that it names, or the
// default one. The queue gives it what it does not say, and refuses what does not suit
// it. Who submits through a job file says everything, so a job that asks for the standard
// amount counts as one that does not say.

// countsQueue reports whether the leader counts the tasks of a queue that run.
func (n *negotiatorState) countsQueue(name string) bool {
	p := n.admission.policy
	q, _ := findQueue(p, name)
	return q.GetCounted() || p.GetAll().GetCounted()
}

// isRequestStopped reports whether a request's tasks may not start, though there may be a
// claim for them: their queue, or all the pool, is stopped, as far as is known, or none
// starts in it.
func (s *Schedd) isRequestStopped(r *queue.Request) bool {
	if s.negotiator == nil {
		return false
	}
	p := s.negotiator.admission.policy
	q, _ := findQueue(p, r.Queue)
	return (p.GetAll().GetStopped() || q.GetStopped()) && !r.Now || q.GetRouting()
}

func findQueue(p *wire.Policy, name string) (*wire.JobQueue, bool) {
	i := slices.IndexFunc(p.GetQueues(), func(q *wire.JobQueue) bool { return q.GetName() == name })
	if i < 0 {
		return nil, false
	}
	return p.GetQueues()[i], true
}

func queueNames(p *wire.Policy) (names []string) {
	for _, q := range p.GetQueues() {
		names = append(names, q.GetName())
	}
	return names
}

// queueAdmission decides whether jobs of somebody may enter queues, and makes of them
// what they are there. Submission and qmove ask it alike.
type queueAdmission struct {
	policy     *wire.Policy
	submitter  queue.CallerIdentity
	groups     func() []string  // Unix groups of who
	fullQueues map[string]bool  // queues in which the leader has found too much just now
	job        *queue.JobStatus // nil: it is submitted just now
}

// admitJobs makes jobs what their queues want them to be. Nothing is changed of a
// submission that is refused but for its own ads.
func (e *queueAdmission) admitJobs(specs []queue.SubmitSpec) error {
	reserves := func(spec queue.SubmitSpec) bool {
		name, _ := spec.Ad.Str(roost.AttrQueue)
		return isReservationName(e.policy, name)
	}
	if len(e.policy.GetQueues()) == 0 && e.policy.GetAll() == nil && !slices.ContainsFunc(specs, reserves) {
		return nil
	}
	if why := e.accessListExcludes(e.policy.GetAll()); why != "" {
		return fmt.Errorf("pool: %w: %s", roost.PermissionDenied, why)
	}
	for i := range specs {
		name, _ := specs[i].Ad.Str(roost.AttrQueue)
		if name == "" {
			name = e.policy.GetDefaultQueue()
		}
		if err := e.enterQueue(&specs[i], name); err != nil {
			return jobOrdinal(err, i, specs)
		}
	}
	return nil
}

// enterQueue puts a job into the queue of that name, or into the one that it routes to:
// the job's ad names the queue afterwards, and has what the queue gives. What an earlier
// queue gave is gone. The empty name is that of no queue, and that of a reservation
// stands for it and the default queue. An error leaves the job as it was.
func (e *queueAdmission) enterQueue(spec *queue.SubmitSpec, name string) error {
	if isReservationName(e.policy, name) {
		return e.enterReservation(spec, name)
	}
	if name == "" || len(e.policy.GetQueues()) == 0 { // where nobody knows which there are any name will do
		return e.addToQueue(spec, &wire.JobQueue{Name: name, Enabled: true})
	}
	q, ok := findQueue(e.policy, name)
	switch {
	case !ok:
		return notFoundError("queue", name, queueNames(e.policy))
	case !q.GetEnabled():
		return queueError(q, errDisabled)
	case q.GetFromRoute():
		return fmt.Errorf("queue %s: %w: only routing queues put jobs into it", name, roost.PermissionDenied)
	case q.GetRouting():
		return e.routeJob(spec, q)
	}
	own := *e
	own.fullQueues = nil // whether there is room in a queue that somebody names the leader says
	return own.addToQueue(spec, q)
}

// queueError says which queue it is that refuses.
func queueError(q *wire.JobQueue, err error) error {
	if q.GetName() == "" {
		return err
	}
	return fmt.Errorf("queue %s: %w", q.GetName(), err)
}

// applyQueue has a queue give a job in it what it does not say, and refuse what does not
// suit it.
func applyQueue(p *wire.Policy, q *wire.JobQueue, spec *queue.SubmitSpec) error {
	if err := applyDefaults(q, p.GetAll(), spec); err != nil {
		return queueError(q, err)
	}
	if err := checkQueueLimits(p, q, spec); err != nil {
		return queueError(q, err)
	}
	return nil
}

// addToQueue puts a job into a queue that routes it nowhere.
func (e *queueAdmission) addToQueue(spec *queue.SubmitSpec, q *wire.JobQueue) error {
	own := queue.SubmitSpec{Ad: spec.Ad.Copy(), Count: spec.Count, Columns: spec.Columns}
	if err := e.checkQueueAccess(q, &own); err != nil {
		return queueError(q, err)
	}
	removeQueueDefaults(own.Ad)
	setQueueName(own.Ad, q.GetName())
	if err := applyQueue(e.policy, q, &own); err != nil {
		return err
	}
	if !q.GetRouting() && e.fullQueues[q.GetName()] {
		return queueError(q, errFull)
	}
	spec.Ad = own.Ad
	return nil
}

// checkQueueAccess refuses a job for what its queue is, and for whose it is.
func (e *queueAdmission) checkQueueAccess(q *wire.JobQueue, spec *queue.SubmitSpec) error {
	if !q.GetEnabled() {
		return errDisabled
	}
	group, _ := spec.Ad.Str(roost.AttrGroup)
	if !queueAdmits(q, e.submitter.User, group) {
		return fmt.Errorf("%w: %s may not use it", roost.PermissionDenied, submitterText(e.submitter.User, group))
	}
	if why := e.accessListExcludes(q); why != "" {
		return fmt.Errorf("%w: %s", roost.PermissionDenied, why)
	}
	return nil
}

// newQueueAdmission decides for whoever has submitted a job.
func (s *Schedd) newQueueAdmission(st *queue.JobStatus) *queueAdmission {
	gid, full := s.queue.SubmitGID(st.Job.Seq), map[string]bool{}
	if n := s.negotiator; n != nil {
		r, who := &n.admission.routes, limitKey(st.Owner, st.Group, gid)
		if r.fullQueues == nil {
			r.fullQueues = map[string]map[string]bool{}
		}
		if r.fullQueues[who] == nil {
			r.fullQueues[who] = full
		}
		full = r.fullQueues[who]
	}
	return &queueAdmission{
		job: st, policy: s.cellPolicy(), submitter: queue.CallerIdentity{User: st.Owner, UID: st.UID, GID: gid,
			Host: s.node.Name}, fullQueues: full,
		groups: func() []string { return s.users.groupNames(st.UID, gid) },
	}
}
