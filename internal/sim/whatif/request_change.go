package whatif

import (
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/cellstate"
	"github.com/roost-batch/roost/negotiator/match"
)

// RequestChange is another request of a job: of all tasks that its user asked for in the
// same way. A nil field stays as it is.
type RequestChange struct {
	Job          string // "12.host"
	Band         *roost.PriorityBand
	CPU          *roost.MilliCPU
	Memory, Disk *roost.Bytes
	GPUs         *int
}

// apply changes the request in a copy of a cell.
func (c *RequestChange) apply(to *cellstate.CellCheckpoint) error {
	i := slices.IndexFunc(to.Jobs, func(j cellstate.JobRow) bool { return j.ID == c.Job })
	if i < 0 {
		return fmt.Errorf("%s: %w: there is no job of that id in the queue", c.Job, roost.NotFound)
	}
	id, err := roost.ParseJobID(c.Job, "")
	if err != nil {
		return err
	}
	key := match.RequestKey{Schedd: id.Host, ID: to.Jobs[i].Request}
	k := slices.IndexFunc(to.Requests, func(r *cellstate.PendingRequest) bool { return r.Key == key })
	if k < 0 || to.Jobs[i].Waiting == 0 {
		return fmt.Errorf("%s: %w: none of its tasks waits for a machine", c.Job, roost.Invalid)
	}
	r := to.Requests[k]
	resources := r.Class.Resources
	set(&r.Band, c.Band)
	set(&resources.CPU, c.CPU)
	set(&resources.Memory, c.Memory)
	set(&resources.Disk, c.Disk)
	set(&resources.GPUs, c.GPUs)
	if r.Class, err = match.NewClass(r.AdText, r.Submitter, r.Band, resources); err != nil {
		return fmt.Errorf("%s: %w", c.Job, err)
	}
	return nil
}

// set changes a field if there is a new value.
func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}
