package schedd

import (
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// In the words of PBS a reservation is a queue: jobs are submitted and moved to it. A queue of the same name comes first.

// reservationMeant reports whether the name of a queue is that of a reservation, and of no queue.
func reservationMeant(p *wire.Policy, name string) bool {
	_, isQueue := findQueue(p, name)
	return !isQueue && name != roost.UsualQueue && slices.Contains(p.GetReservations().GetName(), name)
}

// enterReservation puts a job into a reservation, and the default queue. An error leaves the job as it was.
func (e *entry) enterReservation(spec *queue.Spec, name string) error {
	own := queue.Spec{Ad: spec.Ad.Copy(), Count: spec.Count, Columns: spec.Columns}
	own.Ad.SetString(roost.AttrReservation, name)
	own.Ad.Delete(roost.AttrQueue)
	if err := e.enter(&own, e.policy.GetDefaultQueue()); err != nil {
		return err
	}
	spec.Ad = own.Ad
	return nil
}

// removeReserved removes those of some jobs that are of reservations that are being deleted (OpenPBS, pbs_rdel). The leader says which these are. Whoever
// submits while one is deleted has the policy of before: so new jobs are looked at, too.
func (s *Schedd) removeReserved(ids []roost.JobID, now time.Time) {
	deleting := s.policy().GetDeleting()
	if len(deleting) == 0 {
		return
	}
	for _, id := range ids {
		st, ok := s.queue.Status(id.Seq)
		if !ok || !slices.Contains(deleting, st.Reserved) {
			continue
		}
		events, err := s.queue.Remove(now, queue.Submitter{Admin: true}, queue.Target{Job: id}, "with reservation "+st.Reserved, false)
		if err == nil { // it has not ended
			s.decide(events...)
		}
	}
}
