package schedd

import (
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// A job goes to a queue, if administrators have made any: the one that it names, or the default one. The queue gives it what it does not say, and
// refuses what does not suit it. Who submits through a job file says everything, so a job that asks for the standard amount counts as one that does
// not say.

// counted reports whether the leader counts the tasks of a queue that run.
func (n *negotiation) counted(name string) bool {
	p := n.admission.policy
	q, _ := findQueue(p, name)
	return q.GetCounted() || p.GetAll().GetCounted()
}

// stopped reports whether a request's tasks may not start, though there may be a claim for them: their queue, or all the pool, is stopped, as far as is
// known, or none starts in it.
func (s *Schedd) stopped(r *queue.Request) bool {
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

// entry decides whether jobs of somebody may enter queues, and makes of them what they are there. Submission and qmove ask it alike.
type entry struct {
	policy *wire.Policy
	who    queue.Submitter
	groups func() []string // Unix groups of who
	full   map[string]bool // queues in which the leader has found too much just now
	job    *queue.Status   // nil: it is submitted just now
}

// enqueue makes jobs what their queues want them to be. Nothing is changed of a submission that is refused but for its own ads.
func (e *entry) enqueue(specs []queue.Spec) error {
	reserves := func(spec queue.Spec) bool {
		name, _ := spec.Ad.Str(roost.AttrQueue)
		return reservationMeant(e.policy, name)
	}
	if len(e.policy.GetQueues()) == 0 && e.policy.GetAll() == nil && !slices.ContainsFunc(specs, reserves) {
		return nil
	}
	if why := e.barred(e.policy.GetAll()); why != "" {
		return fmt.Errorf("pool: %w: %s", roost.PermissionDenied, why)
	}
	for i := range specs {
		name, _ := specs[i].Ad.Str(roost.AttrQueue)
		if name == "" {
			name = e.policy.GetDefaultQueue()
		}
		if err := e.enter(&specs[i], name); err != nil {
			return ofSeveral(err, i, specs)
		}
	}
	return nil
}

// enter puts a job into the queue of that name, or into the one that it routes to: the job's ad names the queue afterwards, and has what the queue gives.
// What an earlier queue gave is gone. The empty name is that of no queue, and that of a reservation stands for it and the default queue. An error leaves the job as it was.
func (e *entry) enter(spec *queue.Spec, name string) error {
	if reservationMeant(e.policy, name) {
		return e.enterReservation(spec, name)
	}
	if name == "" || len(e.policy.GetQueues()) == 0 { // where nobody knows which there are any name will do
		return e.take(spec, &wire.JobQueue{Name: name, Enabled: true})
	}
	q, ok := findQueue(e.policy, name)
	switch {
	case !ok:
		return missing("queue", name, queueNames(e.policy))
	case !q.GetEnabled():
		return ofQueue(q, errDisabled)
	case q.GetFromRoute():
		return fmt.Errorf("queue %s: %w: only routing queues put jobs into it", name, roost.PermissionDenied)
	case q.GetRouting():
		return e.route(spec, q)
	}
	own := *e
	own.full = nil // whether there is room in a queue that somebody names the leader says
	return own.take(spec, q)
}

// ofQueue says which queue it is that refuses.
func ofQueue(q *wire.JobQueue, err error) error {
	if q.GetName() == "" {
		return err
	}
	return fmt.Errorf("queue %s: %w", q.GetName(), err)
}

// conform has a queue give a job in it what it does not say, and refuse what does not suit it.
func conform(p *wire.Policy, q *wire.JobQueue, spec *queue.Spec) error {
	if err := fillIn(q, p.GetAll(), spec); err != nil {
		return ofQueue(q, err)
	}
	if err := suits(p, q, spec); err != nil {
		return ofQueue(q, err)
	}
	return nil
}

// take puts a job into a queue that routes it nowhere.
func (e *entry) take(spec *queue.Spec, q *wire.JobQueue) error {
	own := queue.Spec{Ad: spec.Ad.Copy(), Count: spec.Count, Columns: spec.Columns}
	if err := e.mayUse(q, &own); err != nil {
		return ofQueue(q, err)
	}
	undo(own.Ad)
	name(own.Ad, q.GetName())
	if err := conform(e.policy, q, &own); err != nil {
		return err
	}
	if !q.GetRouting() && e.full[q.GetName()] {
		return ofQueue(q, errFull)
	}
	spec.Ad = own.Ad
	return nil
}

// mayUse refuses a job for what its queue is, and for whose it is.
func (e *entry) mayUse(q *wire.JobQueue, spec *queue.Spec) error {
	if !q.GetEnabled() {
		return errDisabled
	}
	group, _ := spec.Ad.Str(roost.AttrGroup)
	if !admits(q, e.who.User, group) {
		return fmt.Errorf("%w: %s may not use it", roost.PermissionDenied, submitterText(e.who.User, group))
	}
	if why := e.barred(q); why != "" {
		return fmt.Errorf("%w: %s", roost.PermissionDenied, why)
	}
	return nil
}

// entryOf decides for whoever has submitted a job.
func (s *Schedd) entryOf(st *queue.Status) *entry {
	gid, full := s.queue.Group(st.Job.Seq), map[string]bool{}
	if n := s.negotiator; n != nil {
		r, who := &n.admission.routes, whose(st.Owner, st.Group, gid)
		if r.full == nil {
			r.full = map[string]map[string]bool{}
		}
		if r.full[who] == nil {
			r.full[who] = full
		}
		full = r.full[who]
	}
	return &entry{
		job: st, policy: s.policy(), who: queue.Submitter{User: st.Owner, UID: st.UID, GID: gid, Host: s.node.Name}, full: full,
		groups: func() []string { return s.users.groupNames(st.UID, gid) },
	}
}
