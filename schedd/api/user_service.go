package api

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/roost-batch/roost"
	ids "github.com/roost-batch/roost/internal/account"
	"github.com/roost-batch/roost/internal/failpoint"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/tasktrace"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/transfer"
)

// callLoopDurable calls f in the loop, and returns when all that f saw is on disk.
// Without that a user could be told of a completion that a crash takes back.
func (s *Service) callLoopDurable(ctx context.Context, f func(now time.Time)) error {
	durable := make(chan struct{})
	if err := s.loop.CallLoop(ctx,
		func(now time.Time) { f(now); s.loop.AfterCommit(func() { close(durable) }) }); err != nil {
		return err
	}
	return s.waitDurable(ctx, durable)
}

// callerOf returns the user at the other end, as the kernel knows them, or the login that
// they made here.
func (s *Service) callerOf(ctx context.Context) (queue.CallerIdentity, error) {
	p, ok := peer.FromContext(ctx)
	if !ok || !p.Local {
		return s.remoteCaller(p)
	}
	name, err := s.users.UserName(p.UID)
	if err != nil {
		return queue.CallerIdentity{}, err
	}
	return queue.CallerIdentity{User: name, UID: p.UID, GID: p.GID, Host: s.node.Name, Admin: p.Plays(peer.Schedd) ||
		s.admins.IsAdmin(name, s.node.Name)}, nil
}

// submit is Submit without its count.
func (s *Service) submit(ctx context.Context, req *wire.SubmitRequest) (*wire.SubmitReply, error) {
	tasktrace.Mark(tasktrace.Received, tasktrace.Task{})
	who, err := s.callerOf(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.checkUser(who); err != nil {
		return nil, err
	}
	specs, err := parseSpecs(req.GetJobs())
	if err != nil {
		return nil, err
	}
	if err := checkFlowScripts(s.node, specs); err != nil {
		return nil, err
	}
	toCell, err := goesToCell(ctx, s, who, req, specs)
	if err != nil {
		return nil, err
	}
	if toCell {
		return submitToCell(ctx, s, who, req, specs)
	}
	return submitAs(ctx, s, req.GetKey(), specs, who)
}

// submitAs takes a submission of a user into this queue. The user may submit jobs.
func submitAs(ctx context.Context, s *Service, key string, specs []queue.SubmitSpec,
	who queue.CallerIdentity) (reply *wire.SubmitReply, err error) {
	if err := s.reserve.RefusalReason(); err != nil {
		return nil, err
	}
	all := withFlowJobs(specs)
	if err := filterSubmission(ctx, s, who, key, all); err != nil {
		return nil, err
	}
	if who.Origin == "" { // the submit node has done so for its users
		if who, err = s.resolveUnixGroup(who, all); err != nil {
			return nil, err
		}
	}
	if err := transfer.CheckStored(who, all); err != nil {
		return nil, err
	}
	if err := s.checkFilesLocal(ctx, who, all); err != nil {
		return nil, err
	}
	if err := s.transfers.Scripts.Check(who, all); err != nil {
		return nil, err
	}
	impossible := s.checkFeasible(ctx, all)
	if spent := s.spentBudgets.Load(); impossible == nil && spent != nil {
		impossible = spent.Refusal(who.User, all, time.Now())
	}
	finish, err := s.leader.RequestAdmission(ctx, who, key, all)
	if err != nil {
		return nil, err
	}
	takeFlowJobs(specs, all)
	reply = &wire.SubmitReply{}
	durable := make(chan struct{})
	if aerr := s.loop.CallLoop(ctx, func(now time.Time) {
		var events []queue.JobEvent
		var ids []roost.JobID
		limits := s.loop.SubmitLimits()
		limits.Infeasible = impossible
		events, ids, reply.RepeatedKey, err = s.queue.SubmitJobs(now, who, key, specs, limits)
		defer finish()
		if err != nil {
			return
		}
		for _, id := range ids {
			reply.Ids = append(reply.Ids, id.String())
		}
		s.loop.CommitEvents(events...)
		s.leader.RemoveReservationJobs(ids, now)
		s.loop.AfterCommit(func() { close(durable) })
	}); aerr != nil {
		s.loop.PostCall(s.daemonContext, func(time.Time) { finish() })
		return nil, aerr
	}
	if err != nil {
		return nil, err
	}
	if err := s.waitCommitted(ctx, durable); err != nil {
		return nil, err
	}
	return reply, nil
}

// waitCommitted waits until the batch is committed that an answer rests on.
func (s *Service) waitCommitted(ctx context.Context, durable <-chan struct{}) error {
	err := s.waitDurable(ctx, durable)
	if err == nil {
		failpoint.Point(failpoint.ScheddAfterAnswer)
	}
	return err
}

// waitDurable waits until a batch is committed, without the crash point of an answer.
func (s *Service) waitDurable(ctx context.Context, durable <-chan struct{}) error {
	select {
	case <-durable:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.reserve.StuckChannel():
		return fmt.Errorf("%w; what was asked for is done when there is room", s.reserve.IsFull())
	case <-s.daemonContext.Done():
		select {
		case <-durable: // the last batch was flushed
			return nil
		default:
			return s.loop.StoppingError(ctx)
		}
	}
}

// checkUser refuses users whose jobs no machine would run.
func (s *Service) checkUser(who queue.CallerIdentity) error {
	own := uint32(os.Geteuid())
	if own != 0 && who.UID != own {
		return fmt.Errorf("%w: this is the pool of uid %d, and without root's rights it runs nobody else's jobs; "+
			"start one of your own with roost up", roost.PermissionDenied, own)
	}
	if own == 0 {
		if err := ids.CheckUID(who.UID); err != nil {
			return err
		}
	}
	if who.UID < ids.FirstUser && !s.node.Schedd.AllowRoot && own == 0 {
		return fmt.Errorf("%w: jobs of root and of system users are not taken here; submit as yourself, or set "+
			"allow_root in the node file", roost.PermissionDenied)
	}
	return nil
}
