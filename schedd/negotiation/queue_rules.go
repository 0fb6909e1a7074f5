package negotiation

import (
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/admission"
	"github.com/roost-batch/roost/schedd/queue"
)

// countsQueue reports whether the leader counts the tasks of a queue that run.
func (n *leaderSession) countsQueue(name string) bool {
	p := n.admission.policy
	q, _ := admission.FindQueue(p, name)
	return q.GetCounted() || p.GetAll().GetCounted()
}

// IsRequestStopped reports whether a request's tasks may not start, even on a claim.
// Their queue or the whole pool is stopped, as far as is known, or no job starts in that
// queue.
func (l *LeaderConn) IsRequestStopped(r *queue.Request) bool {
	if l.stream == nil {
		return false
	}
	p := l.stream.admission.policy
	q, _ := admission.FindQueue(p, r.Queue)
	return (p.GetAll().GetStopped() || q.GetStopped()) && !r.Now || q.GetRouting()
}

// NewQueueAdmission decides for whoever has submitted a job.
func (l *LeaderConn) NewQueueAdmission(st *queue.JobStatus) *admission.QueueAdmission {
	gid, full := l.queue.SubmitGID(st.Job.Seq), map[string]bool{}
	if n := l.stream; n != nil {
		r, who := &n.admission.routes, limitKey(st.Owner, st.Group, gid)
		if r.fullQueues == nil {
			r.fullQueues = map[string]map[string]bool{}
		}
		if r.fullQueues[who] == nil {
			r.fullQueues[who] = full
		}
		full = r.fullQueues[who]
	}
	return &admission.QueueAdmission{
		Now: l.loop.Now(),
		Job: st, Policy: l.Policy(), Submitter: queue.CallerIdentity{User: st.Owner, UID: st.UID, GID: gid,
			Host: l.host}, FullQueues: full,
		Groups: func() []string { return l.groups.GroupNames(st.UID, gid) },
	}
}

// RemoveReservationJobs removes those of some jobs that are of reservations that are
// being deleted (OpenPBS, pbs_rdel). The leader says which these are. Whoever submits
// while one is deleted has the policy of before: so new jobs are looked at, too.
func (l *LeaderConn) RemoveReservationJobs(ids []roost.JobID, now time.Time) {
	deleting := l.Policy().GetDeleting()
	if len(deleting) == 0 {
		return
	}
	for _, id := range ids {
		st, ok := l.queue.Status(id.Seq)
		if !ok || !slices.Contains(deleting, st.Reservation) {
			continue
		}
		events, err := l.queue.RemoveTasks(now, queue.CallerIdentity{Admin: true}, queue.TaskSelector{Job: id},
			"with reservation "+st.Reservation, false)
		if err == nil { // it has not ended
			l.loop.CommitEvents(events...)
		}
	}
}

// Policy is what administrators have set, as it was heard last.
func (l *LeaderConn) Policy() *wire.Policy {
	if l.stream != nil && l.stream.admission.policy != nil {
		return l.stream.admission.policy
	}
	return l.lastPolicy
}

// RequestRecheck has a job asked about anew.
func (l *LeaderConn) RequestRecheck(seq uint64) {
	if l.stream != nil {
		l.stream.admission.cancelQuestion(seq)
	}
}
