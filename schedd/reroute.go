package schedd

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// A job that waits in a routing queue is tried again when something has happened by which a destination may take it: administrators have changed queues,
// the leader says that there is room in one that was too full, or the job itself may run now. Nothing is tried by the clock (OpenPBS: route_retry_time).
// Jobs are tried one after the other, so that of two that wait for the same place the older one gets it.

// routes is what one conversation with the leader knows of jobs that wait in routing queues.
type routes struct {
	due   []uint64                   // jobs that are to be tried, the oldest first
	full  map[string]map[string]bool // by whose jobs they are: queues in which the leader has found too much of theirs
	asked uint64                     // the Admit about the one that is tried now; 0: none is
	seq   uint64                     // that job
	payer queue.Payer                // whose it would be
}

// triesAtOnce bounds how many jobs are tried in one turn of the loop.
const triesAtOnce = 200

// whose tells apart whose jobs are held to the same limits.
func whose(owner, group string, gid uint32) string { return fmt.Sprintf("%s %q %d", owner, group, gid) }

// try has a job tried.
func (r *routes) try(seq uint64) {
	if at, found := slices.BinarySearch(r.due, seq); !found {
		r.due = slices.Insert(r.due, at, seq)
	}
}

// tryAll has all jobs tried that wait in routing queues.
func (s *Schedd) tryAll() {
	for _, id := range s.queue.Requests() {
		s.tryThose(id)
	}
}

// tryThose has the jobs of a request tried, if they wait in a routing queue.
func (s *Schedd) tryThose(id queue.RequestID) {
	r, ok := s.queue.Request(id)
	if !ok || r.Ready == 0 || s.negotiator == nil {
		return
	}
	a := &s.negotiator.admission
	if q, ok := findQueue(a.policy, r.Queue); ok && q.GetRouting() {
		for _, seq := range s.queue.ReadyJobs(id) {
			if seq != a.routes.seq || a.routes.asked == 0 {
				a.routes.try(seq)
			}
		}
	}
}

// hasRoom takes in that there is room in a queue again.
func (s *Schedd) hasRoom(name string) {
	for _, full := range s.negotiator.admission.routes.full {
		delete(full, name)
	}
	s.tryAll()
}

// routeWaiting tries the jobs that are to be tried.
func (s *Schedd) routeWaiting(now time.Time) {
	n := s.negotiator
	if n == nil || n.admission.policy == nil {
		return
	}
	r := &n.admission.routes
	for range triesAtOnce {
		if r.asked != 0 || len(r.due) == 0 {
			return
		}
		seq := r.due[0]
		r.due = r.due[1:]
		s.routeOne(now, n, seq)
	}
	s.outside.again(func(time.Time) {}) // the rest in the next turn
}

// routeOne tries one job.
func (s *Schedd) routeOne(now time.Time, n *negotiation, seq uint64) {
	st, ok := s.queue.Status(seq)
	if !ok {
		return
	}
	e := s.entryOf(&st)
	spec, _ := s.queue.Spec(seq)
	if err := e.onward(&spec, st.Queue); err != nil {
		return // it waits on
	}
	if !n.admission.policy.GetAdmission() {
		s.routeNow(now, seq)
		return
	}
	payer, d, err := queue.Ask(e.who, &spec)
	if err != nil {
		s.log.Warn("a job cannot be routed", "job", st.Job, "err", err)
		return
	}
	r := &n.admission.routes
	r.asked, r.seq, r.payer = s.sendAdmit(n, &wire.Admit{Asks: []*wire.Demand{s.demandMessage(payer, d)}, Moved: sameQuota(&st, &spec)}), seq, payer
}

// onward puts a job that is in a routing queue into one of its destinations.
func (e *entry) onward(spec *queue.Spec, from string) error {
	q, ok := findQueue(e.policy, from)
	if !ok || !q.GetRouting() {
		return errWaits
	}
	var asked []string
	return e.pass(spec, q, &asked)
}

// toldRoute takes in what the leader says of the job that is tried.
func (s *Schedd) toldRoute(now time.Time, m *wire.Admitted) {
	a := &s.negotiator.admission
	seq := a.routes.seq
	a.routes.asked = 0
	if m.GetError() == "" {
		s.routeNow(now, seq)
	} else if name := m.GetQueue(); name != "" {
		if st, ok := s.queue.Status(seq); ok {
			s.entryOf(&st).full[name] = true
			a.routes.try(seq) // the next destination may take it
		}
	}
	s.queue.Recount([]queue.Payer{a.routes.payer}) // the leader counts what it has allowed until it hears
	a.hurry = true
}

// sameQuota reports whether a job is held against the same quotas in another queue.
func sameQuota(st *queue.Status, spec *queue.Spec) bool {
	band, _ := spec.Ad.Str(roost.AttrBand)
	return cmp.Or(band, roost.Batch.String()) == st.Band.String()
}

// routeNow moves a job to where its routing queue passes it on.
func (s *Schedd) routeNow(now time.Time, seq uint64) {
	st, ok := s.queue.Status(seq)
	if !ok {
		return
	}
	e := s.entryOf(&st)
	events, err := s.queue.Alter(now, queue.Submitter{Admin: true}, queue.Target{Job: st.Job}, queue.Alteration{
		Changes: classad.New(), Basis: -1, Idle: true, Conform: func(spec *queue.Spec) error { return e.onward(spec, st.Queue) },
	}, s.limits())
	if err != nil && !errors.Is(err, errWaits) {
		s.log.Warn("a job cannot be routed", "job", st.Job, "err", err)
	}
	s.decide(events...)
	s.decide(s.queue.Admit(now, seq)...)
}
