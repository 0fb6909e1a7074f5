package negotiation

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/admission"
	"github.com/roost-batch/roost/schedd/queue"
)

// A job that waits in a routing queue is tried again when something has happened by which
// a destination may take it: administrators have changed queues, the leader says that
// there is room in one that was too full, or the job itself may run now. Nothing is tried
// by the clock (OpenPBS: route_retry_time). Jobs are tried one after the other, so that
// of two that wait for the same place the older one gets it.

// routingState is what one conversation with the leader knows of jobs that wait in
// routing queues.
type routingState struct {
	dueJobs []uint64 // jobs that are to be tried, the oldest first
	// by whose jobs they are: queues in which the leader has found too much of theirs
	fullQueues map[string]map[string]bool
	askedAdmit uint64         // the Admit about the one that is tried now; 0: none is
	askedJob   uint64         // that job
	payer      queue.QuotaKey // whose it would be
}

// maxRoutingTries bounds how many jobs are tried in one turn of the loop.
const maxRoutingTries = 200

// limitKey tells apart whose jobs are held to the same limits.
func limitKey(owner, group string, gid uint32) string {
	return fmt.Sprintf("%s %q %d", owner, group, gid)
}

// addDue has a job tried.
func (r *routingState) addDue(seq uint64) {
	if at, found := slices.BinarySearch(r.dueJobs, seq); !found {
		r.dueJobs = slices.Insert(r.dueJobs, at, seq)
	}
}

// retryAllRouting has all jobs tried that wait in routing queues.
func (l *LeaderConn) retryAllRouting() {
	for _, id := range l.queue.Requests() {
		l.RetryRouting(id)
	}
}

// RetryRouting has the jobs of a request tried, if they wait in a routing queue.
func (l *LeaderConn) RetryRouting(id queue.RequestID) {
	r, ok := l.queue.Request(id)
	if !ok || r.Ready == 0 || l.stream == nil {
		return
	}
	a := &l.stream.admission
	if q, ok := admission.FindQueue(a.policy, r.Queue); ok && q.GetRouting() {
		for _, seq := range l.queue.ReadyJobs(id) {
			if seq != a.routes.askedJob || a.routes.askedAdmit == 0 {
				a.routes.addDue(seq)
			}
		}
	}
}

// onQueueRoom takes in that there is room in a queue again.
func (l *LeaderConn) onQueueRoom(name string) {
	for _, full := range l.stream.admission.routes.fullQueues {
		delete(full, name)
	}
	l.retryAllRouting()
}

// RouteWaitingJobs tries the jobs that are to be tried.
func (l *LeaderConn) RouteWaitingJobs(now time.Time) {
	n := l.stream
	if n == nil || n.admission.policy == nil {
		return
	}
	r := &n.admission.routes
	for range maxRoutingTries {
		if r.askedAdmit != 0 || len(r.dueJobs) == 0 {
			return
		}
		seq := r.dueJobs[0]
		r.dueJobs = r.dueJobs[1:]
		l.tryRouting(now, n, seq)
	}
	l.loop.PostLater(func(time.Time) {}) // the rest in the next turn
}

// tryRouting tries one job.
func (l *LeaderConn) tryRouting(now time.Time, n *leaderSession, seq uint64) {
	st, ok := l.queue.Status(seq)
	if !ok {
		return
	}
	e := l.NewQueueAdmission(&st)
	spec, _ := l.queue.SubmitSpec(seq)
	if err := e.RouteOn(&spec, st.Queue); err != nil {
		return // it waits on
	}
	if !n.admission.policy.GetAdmission() {
		l.moveRouted(now, seq)
		return
	}
	payer, d, err := queue.SubmissionDemand(e.Submitter, &spec)
	if err != nil {
		l.log.Warn("a job cannot be routed", "job", st.Job, "err", err)
		return
	}
	r := &n.admission.routes
	r.askedAdmit, r.askedJob, r.payer = l.sendAdmit(n,
		&wire.Admit{Asks: []*wire.Demand{l.demandMessage(payer, d)}, Moved: hasSameQuota(&st, &spec)}), seq, payer
}

// onRouteAnswer takes in what the leader says of the job that is tried.
func (l *LeaderConn) onRouteAnswer(now time.Time, m *wire.Admitted) {
	a := &l.stream.admission
	seq := a.routes.askedJob
	a.routes.askedAdmit = 0
	if m.GetError() == "" {
		l.moveRouted(now, seq)
	} else if name := m.GetQueue(); name != "" {
		if st, ok := l.queue.Status(seq); ok {
			l.NewQueueAdmission(&st).FullQueues[name] = true
			a.routes.addDue(seq) // the next destination may take it
		}
	}
	l.queue.ReportDemand([]queue.QuotaKey{a.routes.payer}) // the leader counts what it has allowed until it hears
	a.demandsUrgent = true
}

// hasSameQuota reports whether a job is held against the same quotas in another queue.
func hasSameQuota(st *queue.JobStatus, spec *queue.SubmitSpec) bool {
	band, _ := spec.Ad.Str(roost.AttrBand)
	return cmp.Or(band, roost.BatchBand.String()) == st.Band.String()
}

// moveRouted moves a job to where its routing queue passes it on.
func (l *LeaderConn) moveRouted(now time.Time, seq uint64) {
	st, ok := l.queue.Status(seq)
	if !ok {
		return
	}
	e := l.NewQueueAdmission(&st)
	events, err := l.queue.AlterJob(now, queue.CallerIdentity{Admin: true}, queue.TaskSelector{Job: st.Job},
		queue.JobAlteration{
			Changes: classad.New(), ExpectedVersion: -1, OnlyIdle: true,
			ApplyDefaults: func(spec *queue.SubmitSpec) error {
				return e.RouteOn(spec, st.Queue)
			},
		}, l.loop.SubmitLimits())
	if err != nil && !errors.Is(err, admission.ErrRoutingWaits) {
		l.log.Warn("a job cannot be routed", "job", st.Job, "err", err)
	}
	l.loop.CommitEvents(events...)
	l.loop.CommitEvents(l.queue.AdmitDeferred(now, seq)...)
}
