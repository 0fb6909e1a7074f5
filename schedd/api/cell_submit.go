package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/admission"
	"github.com/roost-batch/roost/schedd/queue"
)

// maxCellSubmission bounds a submission to the queue of the cell, in bytes. Each entry of
// its replicated log may have several.
const maxCellSubmission = 3 << 20

// submitToCell passes a submission on to the queue of the cell. Its jobs outlive this
// host.
func submitToCell(ctx context.Context, s *Service, who queue.CallerIdentity,
	req *wire.SubmitRequest, specs []queue.SubmitSpec) (*wire.SubmitReply, error) {
	name := s.node.CellQueueName()
	if err := checkCellQueue(ctx, s, name); err != nil {
		return nil, err
	}
	all := withFlowJobs(specs)
	err := errors.Join(checkCellSize(req), checkForCell(all))
	if err != nil {
		return nil, err
	}
	if who, err = s.resolveUnixGroup(who, all); err != nil {
		return nil, err
	}
	if err := s.transfers.PutScripts(ctx, who, all); err != nil {
		return nil, err
	}
	pass := &wire.SubmitRequest{Key: req.GetKey(), Jobs: req.GetJobs()}
	if stored, err := s.transfers.StoreInputs(ctx, who, all); err != nil {
		return nil, err
	} else if stored {
		if err := checkStoredFlows(specs, all); err != nil {
			return nil, err
		}
		takeFlowJobs(specs, all)
		if pass.Jobs, err = wireSpecs(specs); err != nil {
			return nil, err
		}
		if err := checkCellSize(pass); err != nil {
			return nil, err
		}
	}
	reply, err := s.peerSchedds.SubmitTo(ctx, name, &wire.NeighbourSubmit{User: who.User, Uid: who.UID, Gid: who.GID,
		Request: pass})
	if err != nil {
		return nil, cellQueueError(name, err)
	}
	reply.CellQueue = true
	if ids := reply.GetIds(); len(ids) > 0 {
		s.cellSubmissions.note(time.Now(), who.UID, ids[len(ids)-1])
	}
	return reply, nil
}

// checkCellSize refuses a submission that is too large for the queue of the cell.
func checkCellSize(req *wire.SubmitRequest) error {
	if size := proto.Size(req); size > maxCellSubmission {
		return fmt.Errorf("%w: a submission of %v, and the queue of the cell takes %v at once: submit the jobs in "+
			"parts, or let a job read what is large from a file", roost.Exhausted, roost.Bytes(size),
			roost.Bytes(maxCellSubmission))
	}
	return nil
}

// checkCellQueue returns why no submission can go to the queue of the cell.
func checkCellQueue(ctx context.Context, s *Service, name string) error {
	if name == "" {
		return fmt.Errorf("%w: this pool has no name of its own, and so no queue of the cell: an administrator sets "+
			"pool in all node files, and cell_queue in those of the central managers, see roost-cell-queue(8); "+
			"--local submits to the queue of this host", roost.Invalid)
	}
	ctx, cancel := context.WithTimeout(ctx, peerSyncTimeout)
	defer cancel()
	switch synced := s.peerSchedds.AwaitSync(ctx); {
	case s.peerSchedds.HasPeer(name):
		return nil
	case !synced:
		return fmt.Errorf("queue of %s: %w: no collector answers, so it is not known where the queue of the cell is; "+
			"try again, or submit to the queue of this host with --local", name, roost.Unavailable)
	}
	return fmt.Errorf("queue of %s: %w: the collectors know of no queue of the cell; its central managers have one "+
		"with a cell_queue block in their node files, see roost-cell-queue(8); --local submits to the queue of this "+
		"host", name, roost.Unavailable)
}

// cellQueueError explains why the queue of the cell has not taken a submission.
func cellQueueError(name string, err error) error {
	if !errors.Is(err, roost.Unavailable) {
		return err
	}
	return fmt.Errorf("queue of %s: %w; no member of it may lead at present, see roost cell --queue: submitting again "+
		"with the same key makes no second set of jobs, and --local submits to the queue of this host", name, err)
}

// checkForCell refuses jobs that need this host.
func checkForCell(specs []queue.SubmitSpec) error {
	for i := range specs {
		ad := specs[i].Ad
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
	reply, err := submitFor(ctx, s, req, who)
	s.metrics.Submits.Inc(submitResult(err))
	return reply, err
}

// submitFor is SubmitFor without its count.
func submitFor(ctx context.Context, s *Service, req *wire.SubmitRequest,
	who queue.CallerIdentity) (*wire.SubmitReply, error) {
	if req == nil || req.GetSchedd() != "" {
		return nil, fmt.Errorf("%w: a submission is passed on once", roost.Invalid)
	}
	if err := s.checkUser(who); err != nil {
		return nil, err
	}
	specs, err := parseSpecs(req.GetJobs())
	if err != nil {
		return nil, err
	}
	if err := s.transfers.GetScripts(ctx, who, withFlowJobs(specs)); err != nil {
		return nil, err
	}
	return submitAs(ctx, s, req.GetKey(), specs, who)
}
