package schedd

import (
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// In the words of PBS a reservation is a queue: jobs are submitted and moved to it. A
// queue of the same name comes first.

// isReservationName reports whether the name of a queue is that of a reservation, and of
// no queue.
func isReservationName(p *wire.Policy, name string) bool {
	_, isQueue := findQueue(p, name)
	return !isQueue && name != roost.DefaultQueueName && slices.Contains(p.GetReservations().GetName(), name)
}

// enterReservation puts a job into a reservation, and the default queue. An error leaves
// the job as it was.
func (e *queueAdmission) enterReservation(spec *queue.SubmitSpec, name string) error {
	own := queue.SubmitSpec{Ad: spec.Ad.Copy(), Count: spec.Count, Columns: spec.Columns}
	own.Ad.SetString(roost.AttrReservation, name)
	own.Ad.Delete(roost.AttrQueue)
	if err := e.enterQueue(&own, e.policy.GetDefaultQueue()); err != nil {
		return err
	}
	spec.Ad = own.Ad
	return nil
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
