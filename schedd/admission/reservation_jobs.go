package admission

import (
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// In the words of PBS a reservation is a queue: jobs are submitted and moved to it. A
// queue of the same name comes first.

// isReservationName reports whether the name of a queue is that of a reservation, and of
// no queue.
func isReservationName(p *wire.Policy, name string) bool {
	_, isQueue := FindQueue(p, name)
	return !isQueue && name != roost.DefaultQueueName && slices.Contains(p.GetReservations().GetName(), name)
}

// enterReservation puts a job into a reservation, and the default queue. An error leaves
// the job as it was.
func (e *QueueAdmission) enterReservation(spec *queue.SubmitSpec, name string) error {
	own := queue.SubmitSpec{Ad: spec.Ad.Copy(), Count: spec.Count, Columns: spec.Columns}
	own.Ad.SetString(roost.AttrReservation, name)
	own.Ad.Delete(roost.AttrQueue)
	if err := e.enterQueue(&own, e.Policy.GetDefaultQueue()); err != nil {
		return err
	}
	spec.Ad = own.Ad
	return nil
}
