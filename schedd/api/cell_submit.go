package api

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/admission"
	"github.com/roost-batch/roost/schedd/queue"
)

// cellSchedd is how a submission names the queue of the cell, whatever its name is.
const cellSchedd = "@"

// maxCellSubmission bounds a submission to the queue of the cell, in bytes. Each entry of
// its replicated log may have several.
const maxCellSubmission = 3 << 20

// submitToCell passes a submission on to the queue of the cell. Its jobs outlive this
// host.
func submitToCell(ctx context.Context, s *Service, who queue.CallerIdentity,
	req *wire.SubmitRequest) (*wire.SubmitReply, error) {
	name := s.node.CellQueueName()
	if wanted := req.GetSchedd(); wanted != cellSchedd && wanted != name {
		return nil, fmt.Errorf("queue of %s: %w: jobs are submitted to the queue of the own host, or to that of the "+
			"cell; log in there to use another: roost login", wanted, roost.Invalid)
	}
	if name == "" || !s.peerSchedds.HasPeer(name) {
		return nil, fmt.Errorf("%w: the collectors know of no queue of the cell; its central managers have one with a "+
			"cell_queue block in their node files, see roost-node(5)", roost.Unavailable)
	}
	if size := proto.Size(req); size > maxCellSubmission {
		return nil, fmt.Errorf("%w: a submission of %v, and the queue of the cell takes %v at once: submit the jobs "+
			"in parts, or let a job read what is large from a file", roost.Exhausted, roost.Bytes(size),
			roost.Bytes(maxCellSubmission))
	}
	specs, err := parseSpecs(req.GetJobs())
	if err != nil {
		return nil, err
	}
	if err := checkForCell(specs); err != nil {
		return nil, err
	}
	if who, err = s.resolveUnixGroup(who, specs); err != nil {
		return nil, err
	}
	return s.peerSchedds.SubmitTo(ctx, name, &wire.NeighbourSubmit{User: who.User, Uid: who.UID, Gid: who.GID,
		Request: &wire.SubmitRequest{Key: req.GetKey(), Jobs: req.GetJobs()}})
}

// checkForCell refuses jobs that need this host.
func checkForCell(specs []queue.SubmitSpec) error {
	for i := range specs {
		ad := specs[i].Ad
		if _, ok := ad.Lookup(roost.AttrScriptFile); ok {
			err := fmt.Errorf("%w: the script of a job is stored at its submit node, and a job of the cell's queue "+
				"outlives that: put the script where the execute nodes see it, and name it as the command",
				roost.Invalid)
			return admission.JobOrdinal(err, i, specs)
		}
		if interactive, _ := ad.Bool(roost.AttrInteractive); interactive {
			err := fmt.Errorf("%w: an interactive job belongs to a terminal of this host: submit it to the queue of "+
				"the host", roost.Invalid)
			return admission.JobOrdinal(err, i, specs)
		}
	}
	return nil
}

// SubmitFor is Submit for a user of another submit node, which vouches for the user. It
// is called in the queue of the cell only.
func SubmitFor(ctx context.Context, s *Service, req *wire.SubmitRequest,
	who queue.CallerIdentity) (*wire.SubmitReply, error) {
	if req == nil || req.GetSchedd() != "" {
		return nil, fmt.Errorf("%w: a submission is passed on once", roost.Invalid)
	}
	reply, err := submitAs(ctx, s, req, who)
	s.metrics.Submits.Inc(submitResult(err))
	return reply, err
}
