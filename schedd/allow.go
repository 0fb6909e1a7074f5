package schedd

import (
	"context"
	"time"

	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// allow asks whether quotas allow what a job is to become, where it asks for more than before and somebody has to be asked. It returns the changes that are
// allowed, or the refusal; with neither nobody was asked: then the job is altered all the same, and asked about later, as one that is submitted then.
// settle is to be called in the loop when it is decided what became of them.
func (s *Schedd) allow(ctx context.Context, req *wire.ActRequest, who queue.Submitter) (allowed string, settle func(), refusal *wire.ActReply_Result, err error) {
	settle = func() {}
	if v := req.GetVerb(); v != wire.ActRequest_ALTER && v != wire.ActRequest_MOVE {
		return "", settle, nil, nil
	}
	var answer chan error
	var id, changes string
	if err := s.ask(ctx, func(now time.Time) {
		n := s.negotiator
		if n == nil || !n.admission.policy.GetAdmission() {
			return
		}
		chosen, err := s.choose(req.GetSelection(), who, true)
		if err != nil || len(chosen) != 1 || chosen[0].err != nil || s.present(chosen[0].Target) != nil {
			return // what is wrong is said when it is done
		}
		t := chosen[0].Target
		events, err := s.wish(req, t, who, now)
		if err != nil || len(events) == 0 || events[0].What != queue.Altered || !events[0].Submission.Unasked {
			return
		}
		payer, d := s.queue.AskMore(events[0])
		id, changes = t.String(), events[0].Submission.Ad
		settle, answer = s.askFor(n, []queue.Payer{payer}, []*wire.Demand{s.demandMessage(payer, d)})
	}); err != nil || answer == nil {
		return "", settle, nil, err
	}
	switch err := await(ctx, answer); {
	case err == nil:
		return changes, settle, nil, nil
	case err == errUnasked:
		s.log.Warn("nobody said whether quotas allow an alteration: it is made, and asked about later", "job", id)
		return "", settle, nil, nil
	default:
		s.post(context.WithoutCancel(ctx), op(func(time.Time) { settle() }))
		return "", settle, &wire.ActReply_Result{Id: id, Error: err.Error(), Kind: uint32(rpc.KindOf(err))}, ctx.Err()
	}
}

// asAllowed marks an alteration as one that nobody has to be asked about any more, if it is still that which was asked about.
func (s *Schedd) asAllowed(now time.Time, events []queue.Event, changes string) []queue.Event {
	if len(events) > 0 && events[0].What == queue.Altered && events[0].Submission.Ad == changes {
		events[0].Submission.Unasked = false
		events = append(events, s.queue.Admit(now, events[0].Job)...)
	}
	return events
}
