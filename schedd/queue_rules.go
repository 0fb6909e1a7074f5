package schedd

import (
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/admission"
	"github.com/roost-batch/roost/schedd/queue"
)

// countsQueue reports whether the leader counts the tasks of a queue that run.
func (n *negotiatorState) countsQueue(name string) bool {
	p := n.admission.policy
	q, _ := admission.FindQueue(p, name)
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
	q, _ := admission.FindQueue(p, r.Queue)
	return (p.GetAll().GetStopped() || q.GetStopped()) && !r.Now || q.GetRouting()
}

// newQueueAdmission decides for whoever has submitted a job.
func (s *Schedd) newQueueAdmission(st *queue.JobStatus) *admission.QueueAdmission {
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
	return &admission.QueueAdmission{
		Now: s.clock.now,
		Job: st, Policy: s.cellPolicy(), Submitter: queue.CallerIdentity{User: st.Owner, UID: st.UID, GID: gid,
			Host: s.node.Name}, FullQueues: full,
		Groups: func() []string { return s.users.groupNames(st.UID, gid) },
	}
}

// removeReservationJobs removes those of some jobs that are of reservations that are
// being deleted (OpenPBS, pbs_rdel). The leader says which these are. Whoever submits
// while one is deleted has the policy of before: so new jobs are looked at, too.
func (s *Schedd) removeReservationJobs(ids []roost.JobID, now time.Time) {
	deleting := s.cellPolicy().GetDeleting()
	if len(deleting) == 0 {
		return
	}
	for _, id := range ids {
		st, ok := s.queue.Status(id.Seq)
		if !ok || !slices.Contains(deleting, st.Reservation) {
			continue
		}
		events, err := s.queue.RemoveTasks(now, queue.CallerIdentity{Admin: true}, queue.TaskSelector{Job: id},
			"with reservation "+st.Reservation, false)
		if err == nil { // it has not ended
			s.commitEvents(events...)
		}
	}
}
