package api

import (
	"context"
	"time"

	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/negotiation"
	"github.com/roost-batch/roost/schedd/queue"
)

// checkAlterQuota asks the leader whether quotas allow an alteration that asks for more
// than before. It returns the changes that are allowed, or the refusal. With neither,
// nobody was asked. Then the job is altered all the same and asked about later, like a
// job that is submitted in that state. The caller calls finish in the loop when it is
// decided what became of the changes.
func (s *Service) checkAlterQuota(ctx context.Context, req *wire.ActRequest,
	who queue.CallerIdentity) (allowed string, finish func(), refusal *wire.ActReply_Result, err error) {
	finish = func() {}
	if v := req.GetVerb(); v != wire.ActRequest_ALTER && v != wire.ActRequest_MOVE &&
		(v != wire.ActRequest_UPDATE || req.GetUpdate().GetPlan()) {
		return "", finish, nil, nil
	}
	var answer chan error
	var id, changes string
	if err := s.loop.CallLoop(ctx, func(now time.Time) {
		if !s.leader.ChecksQuotas() {
			return
		}
		chosen, err := s.selectTargets(req.GetSelection(), who, true)
		if err != nil || len(chosen) != 1 || chosen[0].err != nil || s.mustBeQueued(chosen[0].TaskSelector) != nil {
			return // what is wrong is said when it is done
		}
		t := chosen[0].TaskSelector
		events, err := s.DecideVerb(req, t, who, now)
		if err != nil || len(events) == 0 || !changesAd(events[0]) || !events[0].Submission.DeferredAdmission {
			return
		}
		payer, d := s.queue.AlterationDemand(events[0])
		id, changes = t.String(), events[0].Submission.Ad
		finish, answer = s.leader.RequestQuota(payer, d)
	}); err != nil || answer == nil {
		return "", finish, nil, err
	}
	switch err := negotiation.AwaitAdmission(ctx, answer); {
	case err == nil:
		return changes, finish, nil, nil
	case err == negotiation.ErrNotChecked:
		s.log.Warn("nobody said whether quotas allow an alteration: it is made, and asked about later", "job", id)
		return "", finish, nil, nil
	default:
		s.loop.PostCall(context.WithoutCancel(ctx), func(time.Time) { finish() })
		return "", finish, &wire.ActReply_Result{Id: id, Error: err.Error(), Kind: uint32(rpc.KindOf(err))}, ctx.Err()
	}
}

// changesAd reports whether an event changes what a job asks for.
func changesAd(e queue.JobEvent) bool { return e.Type == queue.Altered || e.Type == queue.Revised }

// markAdmitted marks an alteration as admitted if its changes are those that the leader
// was asked about.
func (act *jobActions) markAdmitted(now time.Time, events []queue.JobEvent, changes string) []queue.JobEvent {
	if len(events) > 0 && changesAd(events[0]) && events[0].Submission.Ad == changes {
		events[0].Submission.DeferredAdmission = false
		events = append(events, act.queue.AdmitDeferred(now, events[0].Job)...)
	}
	return events
}
