package schedd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// Act holds, releases, removes, retries, suspends, resumes, signals, reruns, checkpoints, alters, moves or reorders jobs, or has them start out of turn. When it returns, the changes are on disk; what runs is told to end.
func (s *service) Act(ctx context.Context, req *wire.ActRequest) (*wire.ActReply, error) {
	who, err := s.caller(ctx)
	if err != nil {
		return nil, err
	}
	all := &wire.ActReply{}
	nodes, parts := s.actParts(req, who)
	for i, node := range nodes {
		var reply *wire.ActReply
		if node != "" {
			reply = s.actThere(ctx, node, parts[i], who)
		} else if reply, err = s.actOn(ctx, parts[i], who); err != nil {
			return nil, err
		}
		all.Results = append(all.Results, reply.GetResults()...)
	}
	return all, nil
}

// actOn acts on jobs of this schedd.
func (s *Schedd) actOn(ctx context.Context, req *wire.ActRequest, who queue.Submitter) (*wire.ActReply, error) {
	reply := &wire.ActReply{}
	allowed, settle, refusal, err := s.allow(ctx, req, who)
	if err != nil || refusal != nil {
		return &wire.ActReply{Results: []*wire.ActReply_Result{refusal}}, err
	}
	durable := make(chan struct{})
	var ended []endedJob
	if aerr := s.ask(ctx, func(now time.Time) {
		defer settle()
		var chosen []target
		if chosen, err = s.choose(req.GetSelection(), who, true); err != nil {
			return
		}
		if req.GetVerb() == wire.ActRequest_ORDER {
			reply.Results = append(reply.Results, s.order(chosen, who, now))
			chosen = nil
		}
		for _, t := range chosen {
			// A word for several jobs means those of them to which it can be done.
			if result := s.act(req, t, who, now, allowed); !t.some || result.Error == "" || !pointless(roost.Kind(result.Kind)) {
				reply.Results = append(reply.Results, result)
				if askedToForget(req, t, result) {
					ended = append(ended, endedJob{t.Target, result})
				}
			}
		}
		s.then(func() { close(durable) })
	}); aerr != nil {
		s.post(s.life, op(func(time.Time) { settle() }))
		return nil, aerr
	}
	if err != nil {
		return nil, err
	}
	s.forgetJobs(ctx, who, ended)
	for _, r := range reply.GetResults() {
		if kind := roost.Kind(r.GetKind()); kind == roost.PermissionDenied && r.GetError() != "" {
			rpc.Refused(ctx, req.GetVerb().String(), errors.New(r.GetError()))
		}
	}
	return reply, s.onDisk(ctx, durable)
}

// act applies one verb to one target. What of alterations quotas allow is known already.
func (s *Schedd) act(req *wire.ActRequest, t target, who queue.Submitter, now time.Time, allowed string) *wire.ActReply_Result {
	result := &wire.ActReply_Result{Id: t.text}
	var events []queue.Event
	err := t.err
	var past *queue.Queue // with a job that is to be run again and has left the queue
	if err == nil && againVerb(req.GetVerb()) {
		past = s.pastJob(t.Target)
	}
	if err == nil && req.GetVerb() == wire.ActRequest_RUN && !who.Admin { // also where there is no such job (OpenPBS)
		err = fmt.Errorf("%v: %w: only who administers has jobs start out of turn", t.Target, roost.PermissionDenied)
	}
	if err == nil && past == nil {
		err = s.present(t.Target)
	}
	if past != nil {
		events, err = s.returnJob(now, who, past, t.Target, req.GetVerb())
	} else if err == nil {
		switch req.GetVerb() {
		case wire.ActRequest_CHECKPOINT:
			result.Id = t.Target.String()
			result.Tasks, err = s.takeCheckpoints(now, who, t.Target)
		case wire.ActRequest_SIGNAL:
			result.Id = t.Target.String()
			result.Tasks, err = s.signal(now, who, t.Target, req.GetSignal())
		case wire.ActRequest_MESSAGE:
			result.Id = t.Target.String()
			result.Tasks, err = s.message(now, who, t.Target, req)
		default:
			events, err = s.wish(req, t.Target, who, now)
		}
	}
	if err != nil && req.GetAgain() && (req.GetVerb() == wire.ActRequest_HOLD || req.GetVerb() == wire.ActRequest_RELEASE) && rpc.KindOf(err) == roost.Conflict {
		result.Id = t.Target.String()
		return result
	}
	if err != nil {
		result.Error, result.Kind, result.Refusal = err.Error(), uint32(rpc.KindOf(err)), refusalOf(err)
		return result
	}
	if v := req.GetVerb(); v == wire.ActRequest_CHECKPOINT || v == wire.ActRequest_SIGNAL || v == wire.ActRequest_MESSAGE {
		return result // that goes to nodes, and changes no state here
	}
	before := s.queue.Changed()
	s.decide(s.asAllowed(now, events, allowed)...)
	result.Id, result.Tasks = t.Target.String(), uint32(s.queue.Changed()-before)
	if v := req.GetVerb(); v == wire.ActRequest_RUN && len(events) > 0 {
		result.Tasks = uint32(s.queue.RunNowStatus(t.Target.Job.Seq).Pending)
	} else if v == wire.ActRequest_HOLD || v == wire.ActRequest_REMOVE || v == wire.ActRequest_RERUN {
		result.Tasks += s.active(t.Target)
	}
	return result
}

// wish decides on what changes the state of a job.
func (s *Schedd) wish(req *wire.ActRequest, t queue.Target, who queue.Submitter, now time.Time) ([]queue.Event, error) {
	switch v := req.GetVerb(); v {
	case wire.ActRequest_RELEASE, wire.ActRequest_RETRY, wire.ActRequest_RERUN, wire.ActRequest_RUN:
		if err := s.trusted(s.queue, t); err != nil {
			return nil, err
		}
	}
	switch req.GetVerb() {
	case wire.ActRequest_HOLD:
		if req.GetForce() {
			return s.queue.Lock(now, who, t, req.GetReason())
		}
		return s.queue.Hold(now, who, t, req.GetReason())
	case wire.ActRequest_RELEASE:
		if req.GetForce() {
			return s.queue.Unlock(now, who, t)
		}
		return s.queue.Release(now, who, t)
	case wire.ActRequest_REMOVE:
		return s.queue.Remove(now, who, t, req.GetReason(), req.GetForce())
	case wire.ActRequest_SUSPEND:
		return s.queue.Suspend(now, who, t, req.GetReason())
	case wire.ActRequest_RESUME:
		return s.queue.Thaw(now, who, t)
	case wire.ActRequest_RERUN:
		events, err := s.queue.Rerun(now, who, t, req.GetForce())
		if rpc.KindOf(err) == roost.Finished {
			events, err = s.queue.Retry(now, who, t)
			return rerunEnded(s.queue, t, events, err)
		}
		return events, err
	case wire.ActRequest_RUN:
		return s.queue.RunNow(now, who, t, req.GetNodes())
	case wire.ActRequest_RETRY:
		return s.queue.Retry(now, who, t)
	case wire.ActRequest_ALTER:
		return s.alter(now, who, t, req.GetAlteration())
	case wire.ActRequest_MOVE:
		return s.moveJob(now, who, t, req.GetQueue())
	}
	return nil, fmt.Errorf("verb %v: %w", req.GetVerb(), roost.Invalid)
}

// pointless is what goes wrong when there is nothing to do.
func pointless(k roost.Kind) bool { return k == roost.Finished || k == roost.Conflict }

// active counts the tasks of a target that run: those that were told to end now change when they have.
func (s *Schedd) active(t queue.Target) (n uint32) {
	st, ok := s.queue.Status(t.Job.Seq)
	if !ok {
		return 0
	}
	for state, count := range st.Counts {
		if roost.TaskState(state).Active() {
			n += uint32(count)
		}
	}
	if n == 0 || len(t.Ranges) == 0 {
		return n
	}
	n = 0
	for _, r := range t.Ranges {
		for i := r.First; i <= r.Last && i < s.queue.Numbers(t.Job.Seq); i++ {
			if one, ok := s.queue.TaskStatus(t.Job.Task(i)); ok && one.Task.State.Active() {
				n++
			}
		}
	}
	return n
}

// present says why a job that is not in the queue cannot be acted on: it has ended, or never was.
func (s *Schedd) present(t queue.Target) error {
	if _, ok := s.queue.Status(t.Job.Seq); ok && t.Job.Host == s.node.Name {
		return nil
	}
	if t.Job.Host != s.node.Name && s.neighbours.knows(t.Job.Host) {
		return fmt.Errorf("job %v: %w: it is in %s's queue: on %s run roost token --user, then here the line that it prints", t, roost.Unauthenticated, t.Job.Host, t.Job.Host)
	}
	if past, _, err := s.history.Job(t.Job.Seq); err == nil && t.Job.Host == s.node.Name {
		if _, err := past.Locate(t); err != nil {
			return err
		}
		return fmt.Errorf("%v: %w", t, roost.Finished)
	}
	return fmt.Errorf("%v: %w: there is no such job here", t, roost.NotFound)
}
