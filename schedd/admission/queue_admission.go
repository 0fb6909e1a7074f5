package admission

import (
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// A job goes to a queue, if administrators have made any: the one that it names, or the
// default one. The queue gives it what it does not say, and refuses what does not suit
// it. Who submits through a job file says everything, so a job that asks for the standard
// amount counts as one that does not say.

// FindQueue returns the queue of that name, if administrators have made one.
func FindQueue(p *wire.Policy, name string) (*wire.JobQueue, bool) {
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

// QueueAdmission decides whether jobs of somebody may enter queues, and makes of them
// what they are there. Submission and qmove ask it alike.
type QueueAdmission struct {
	Now        time.Time // of the turn of the loop that decides
	Policy     *wire.Policy
	Submitter  queue.CallerIdentity
	Groups     func() []string  // Unix groups of who
	FullQueues map[string]bool  // queues in which the leader has found too much just now
	Job        *queue.JobStatus // nil: it is submitted just now
}

// AdmitJobs makes jobs what their queues want them to be. Nothing is changed of a
// submission that is refused but for its own ads.
func (e *QueueAdmission) AdmitJobs(specs []queue.SubmitSpec) error {
	if err := checkServiceNames(e.Submitter.User, specs); err != nil {
		return err
	}
	reserves := func(spec queue.SubmitSpec) bool {
		name, _ := spec.Ad.Str(roost.AttrQueue)
		return isReservationName(e.Policy, name)
	}
	if len(e.Policy.GetQueues()) == 0 && e.Policy.GetAll() == nil && !slices.ContainsFunc(specs, reserves) {
		return nil
	}
	if why := e.accessListExcludes(e.Policy.GetAll()); why != "" {
		return fmt.Errorf("pool: %w: %s", roost.PermissionDenied, why)
	}
	for i := range specs {
		name, _ := specs[i].Ad.Str(roost.AttrQueue)
		if name == "" {
			name = e.Policy.GetDefaultQueue()
		}
		if err := e.enterQueue(&specs[i], name); err != nil {
			return JobOrdinal(err, i, specs)
		}
	}
	return nil
}

// enterQueue puts a job into the named queue, or into the queue to which that one routes
// it. The job's ad then names the queue, and has the values that the queue sets. The
// values that an earlier queue set are removed. The empty name means no queue. The name
// of a reservation means the reservation and the default queue. An error leaves the job
// unchanged.
func (e *QueueAdmission) enterQueue(spec *queue.SubmitSpec, name string) error {
	if isReservationName(e.Policy, name) {
		return e.enterReservation(spec, name)
	}
	if name == "" || len(e.Policy.GetQueues()) == 0 { // where nobody knows which there are any name will do
		return e.addToQueue(spec, &wire.JobQueue{Name: name, Enabled: true})
	}
	q, ok := FindQueue(e.Policy, name)
	switch {
	case !ok:
		return notFoundError("queue", name, queueNames(e.Policy))
	case !q.GetEnabled():
		return queueError(q, errDisabled)
	case q.GetFromRoute():
		return fmt.Errorf("queue %s: %w: only routing queues put jobs into it", name, roost.PermissionDenied)
	case q.GetRouting():
		return e.routeJob(spec, q)
	}
	own := *e
	own.FullQueues = nil // whether there is room in a queue that somebody names the leader says
	return own.addToQueue(spec, q)
}

// queueError says which queue it is that refuses.
func queueError(q *wire.JobQueue, err error) error {
	if q.GetName() == "" {
		return err
	}
	return fmt.Errorf("queue %s: %w", q.GetName(), err)
}

// applyQueue sets the values that a job leaves out to those of its queue. It refuses what
// the queue does not allow.
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
func (e *QueueAdmission) addToQueue(spec *queue.SubmitSpec, q *wire.JobQueue) error {
	own := queue.SubmitSpec{Ad: spec.Ad.Copy(), Count: spec.Count, Columns: spec.Columns}
	if err := e.checkQueueAccess(q, &own); err != nil {
		return queueError(q, err)
	}
	removeQueueDefaults(own.Ad)
	setQueueName(own.Ad, q.GetName())
	if err := applyQueue(e.Policy, q, &own); err != nil {
		return err
	}
	if !q.GetRouting() && e.FullQueues[q.GetName()] {
		return queueError(q, errFull)
	}
	spec.Ad = own.Ad
	return nil
}

// checkQueueAccess refuses a job for what its queue is, and for whose it is.
func (e *QueueAdmission) checkQueueAccess(q *wire.JobQueue, spec *queue.SubmitSpec) error {
	if !q.GetEnabled() {
		return errDisabled
	}
	group, _ := spec.Ad.Str(roost.AttrGroup)
	if !queueAdmits(q, e.Submitter.User, group) {
		return fmt.Errorf("%w: %s may not use it", roost.PermissionDenied, submitterText(e.Submitter.User, group))
	}
	if why := e.accessListExcludes(q); why != "" {
		return fmt.Errorf("%w: %s", roost.PermissionDenied, why)
	}
	return nil
}
