package api

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// A submission names the queue that takes it: the own host's, that of the cell whatever
// its name is, or none. For one that names none the jobs decide, and then the node file.
const (
	hostSchedd = "."
	cellSchedd = "@"
)

// peerSyncTimeout bounds how long the submission of a service waits for the collectors to
// say which schedds there are.
const peerSyncTimeout = 5 * time.Second

// goesToCell reports whether a submission goes to the queue of the cell.
func goesToCell(ctx context.Context, s *Service, who queue.CallerIdentity, req *wire.SubmitRequest,
	specs []queue.SubmitSpec) (bool, error) {
	name := s.node.CellQueueName()
	switch to := req.GetSchedd(); {
	case to == hostSchedd || to == s.node.Name:
		return false, nil
	case to == cellSchedd || to != "" && to == name:
		return true, nil
	case to != "":
		return false, fmt.Errorf("queue of %s: %w: jobs are submitted to the queue of the own host, or to that of the "+
			"cell; log in there to use another: roost login", to, roost.Invalid)
	}
	choice, err := requestedQueue(specs)
	switch {
	case err != nil:
		return false, err
	case choice != nil:
		return *choice, nil
	case slices.ContainsFunc(specs, isInteractive):
		return false, nil // it belongs to a terminal of this host
	case s.node.Schedd.SubmitTo == config.SubmitToCell:
		return true, nil
	case name == "" || s.node.Schedd.SubmitTo == config.SubmitToHost || !slices.ContainsFunc(specs, isService):
		return false, nil
	}
	return servicesGoToCell(ctx, s, who, name, req.GetKey())
}

// servicesGoToCell reports whether the pool has a queue of the cell, where services go by
// themselves. Jobs that the key made before stay where they are.
func servicesGoToCell(ctx context.Context, s *Service, who queue.CallerIdentity, name, key string) (bool, error) {
	var repeated bool
	if err := s.loop.CallLoop(ctx, func(time.Time) {
		repeated = s.queue.HasSubmission(who, key, s.loop.SubmitLimits())
	}); err != nil || repeated {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, peerSyncTimeout)
	defer cancel()
	if !s.peerSchedds.AwaitSync(ctx) {
		return false, fmt.Errorf("%w: no collector answers, so it is not known whether the pool has a queue of the "+
			"cell, where services go; try again, or say --local for the queue of this host", roost.Unavailable)
	}
	return s.peerSchedds.HasPeer(name), nil
}

// requestedQueue returns what the jobs say about the queue that they go to; nil: nothing.
func requestedQueue(specs []queue.SubmitSpec) (choice *bool, err error) {
	for i := range specs {
		if _, there := specs[i].Ad.Lookup(roost.AttrCellQueue); !there {
			continue
		}
		cell, ok := specs[i].Ad.Bool(roost.AttrCellQueue)
		if !ok {
			return nil, fmt.Errorf("job %d: %w: %s is true or false", i, roost.Invalid, roost.AttrCellQueue)
		}
		if choice != nil && *choice != cell {
			return nil, fmt.Errorf("%w: one job says cell_queue = true and another one cell_queue = false, and the "+
				"jobs of a submission go to one queue: submit them one by one, or say --cell or --local for all",
				roost.Invalid)
		}
		choice = &cell
	}
	return choice, nil
}

func isInteractive(s queue.SubmitSpec) bool {
	is, _ := s.Ad.Bool(roost.AttrInteractive)
	return is
}

// isService reports whether a job is to run always. An alloc set is.
func isService(s queue.SubmitSpec) bool {
	_, is := s.Ad.Lookup(roost.AttrService)
	alloc, _ := s.Ad.Bool(roost.AttrAlloc)
	return is || alloc
}
