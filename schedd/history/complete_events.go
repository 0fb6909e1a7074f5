package history

import (
	"errors"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue"
)

// CompleteEvents is all that happened to a job, given its events in the log of the queue.
// If the job came back from the history, that has what was before, and all of it once the
// job has ended again.
func (h *History) CompleteEvents(seq uint64, events []queue.JobEvent) ([]queue.JobEvent, error) {
	for i := len(events) - 1; i >= 0; i-- {
		if events[i].Type != queue.Returned {
			continue
		}
		_, before, err := h.Job(seq)
		if err != nil && !errors.Is(err, roost.NotFound) { // somebody has removed it there meanwhile
			return nil, err
		}
		if slices.ContainsFunc(before, func(e queue.JobEvent) bool {
			return e.Type == queue.Returned && e.Time == events[i].Time
		}) {
			return before, nil
		}
		return append(before, events[i:]...), nil
	}
	return events, nil
}
