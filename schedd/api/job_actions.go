package api

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

// Act applies one verb to the selected jobs. The verbs are hold, release, remove, retry,
// suspend, resume, signal, rerun, checkpoint, alter, update, move, reorder, start out of
// turn, and give machines back. When it returns, the changes are on disk, and running
// tasks get the order to end.
func (s *Service) Act(ctx context.Context, req *wire.ActRequest) (*wire.ActReply, error) {
	who, err := s.callerOf(ctx)
	if err != nil {
		return nil, err
	}
	if sel := req.GetSelection(); sel != nil {
		if sel.Selectors, err = resolveLast(ctx, s, who, sel.Selectors); err != nil {
			return nil, err
		}
	}
	all := &wire.ActReply{}
	nodes, parts := s.splitAct(req, who)
	for i, node := range nodes {
		var reply *wire.ActReply
		if word := sharedWord(s, who, node, parts[i]); word != "" {
			reply, err = actInBothQueues(ctx, s, word, parts[i], who)
		} else if node != "" {
			reply = s.peerSchedds.ActOnPeer(ctx, node, parts[i], who)
		} else {
			reply, err = s.ActOnJobs(ctx, parts[i], who)
		}
		if err != nil {
			return nil, err
		}
		all.Results = append(all.Results, reply.GetResults()...)
	}
	return all, nil
}

// splitAct cuts an act into one for each row of jobs of one schedd. The name of this
// schedd is empty. Every user has jobs in the queue of the cell. What a user may not do
// elsewhere stays here, where it is refused. Two jobs change places in one queue only.
func (s *Service) splitAct(req *wire.ActRequest, who queue.CallerIdentity) (nodes []string, parts []*wire.ActRequest) {
	cell := s.node.CellQueueName()
	isAdmin := s.admins.IsAdmin(who.User, s.node.Name)
	nodes, parts = s.peerSchedds.SplitAct(req, func(host string) bool {
		return isAdmin || who.User != "" && host == cell
	}, func(word string) bool { return isWordOfSeveral(word) && userCellQueue(s, who) != "" })
	if req.GetVerb() == wire.ActRequest_ORDER && len(nodes) > 1 {
		return []string{""}, []*wire.ActRequest{req}
	}
	return nodes, parts
}

// ActOnJobs acts on jobs of this schedd.
func (s *Service) ActOnJobs(ctx context.Context, req *wire.ActRequest,
	who queue.CallerIdentity) (*wire.ActReply, error) {
	reply := &wire.ActReply{}
	if refused, err := filterAlterations(ctx, s, req, who); err != nil || refused != nil {
		return &wire.ActReply{Results: refused}, err
	}
	allowed, finish, refusal, err := s.checkAlterQuota(ctx, req, who)
	if err != nil || refusal != nil {
		return &wire.ActReply{Results: []*wire.ActReply_Result{refusal}}, err
	}
	durable := make(chan struct{})
	var ended []endedJob
	if aerr := s.loop.CallLoop(ctx, func(now time.Time) {
		defer finish()
		var chosen []selectionTarget
		if chosen, err = s.selectTargets(req.GetSelection(), who, true); err != nil {
			return
		}
		if req.GetVerb() == wire.ActRequest_ORDER {
			reply.Results = append(reply.Results, s.decideReorder(chosen, who, now))
			chosen = nil
		}
		var noops []*wire.ActReply_Result
		for _, t := range chosen {
			// A word for several jobs means those of them to which it can be done.
			result := s.applyVerb(req, t, who, now, allowed)
			if t.isPart && result.Error != "" && isNoop(roost.ErrorKind(result.Kind)) {
				noops = append(noops, result)
				continue
			}
			reply.Results = append(reply.Results, result)
			if isForgetRequest(req, t, result) {
				ended = append(ended, endedJob{t.TaskSelector, result})
			}
		}
		// An update concerns one service as a rule, whose user wants to know why not.
		if len(reply.Results) == 0 && req.GetVerb() == wire.ActRequest_UPDATE {
			reply.Results = noops
		}
		s.loop.AfterCommit(func() { close(durable) })
	}); aerr != nil {
		s.loop.PostCall(s.daemonContext, func(time.Time) { finish() })
		return nil, aerr
	}
	if err != nil {
		return nil, err
	}
	s.removeHistoryJobs(ctx, who, ended)
	for _, r := range reply.GetResults() {
		if kind := roost.ErrorKind(r.GetKind()); kind == roost.PermissionDenied && r.GetError() != "" {
			rpc.LogRefusal(ctx, req.GetVerb().String(), errors.New(r.GetError()))
		}
	}
	return reply, s.waitCommitted(ctx, durable)
}

// applyVerb applies one verb to one target. What of alterations quotas allow is known
// already.
func (act *jobActions) applyVerb(req *wire.ActRequest, t selectionTarget, who queue.CallerIdentity, now time.Time,
	allowed string) *wire.ActReply_Result {
	result := &wire.ActReply_Result{Id: t.text}
	var events []queue.JobEvent
	err := t.err
	var past *queue.Queue // with a job that is to be run again and has left the queue
	if err == nil && rerunsEnded(req.GetVerb()) {
		past = act.historyJob(t.TaskSelector)
	}
	if err == nil && req.GetVerb() == wire.ActRequest_RUN && !who.Admin { // also where there is no such job (OpenPBS)
		err = fmt.Errorf("%v: %w: only who administers has jobs start out of turn", t.TaskSelector,
			roost.PermissionDenied)
	}
	if err == nil && past == nil {
		err = act.mustBeQueued(t.TaskSelector)
	}
	if past != nil {
		events, err = act.rerunEndedJob(now, who, past, t.TaskSelector, req.GetVerb())
	} else if err == nil {
		switch req.GetVerb() {
		case wire.ActRequest_CHECKPOINT:
			result.Id = t.TaskSelector.String()
			result.Tasks, err = act.requestCheckpoints(now, who, t.TaskSelector)
		case wire.ActRequest_SIGNAL:
			result.Id = t.TaskSelector.String()
			result.Tasks, err = act.sendSignal(now, who, t.TaskSelector, req.GetSignal())
		case wire.ActRequest_HOLD_CHECKS:
			result.Id = t.TaskSelector.String()
			result.Tasks, err = act.holdChecks(now, who, t.TaskSelector, time.Duration(req.GetHoldChecksNs()))
		case wire.ActRequest_MESSAGE:
			result.Id = t.TaskSelector.String()
			result.Tasks, err = act.sendOutputMessage(now, who, t.TaskSelector, req)
		case wire.ActRequest_UPDATE:
			events, result.Notes, err = act.decideUpdate(now, who, t.TaskSelector, req.GetUpdate())
		default:
			events, err = act.DecideVerb(req, t.TaskSelector, who, now)
		}
	}
	if err != nil && req.GetAgain() && (req.GetVerb() == wire.ActRequest_HOLD ||
		req.GetVerb() == wire.ActRequest_RELEASE) && rpc.KindOf(err) == roost.Conflict {
		result.Id = t.TaskSelector.String()
		return result
	}
	if err != nil {
		result.Error, result.Kind, result.Refusal = err.Error(), uint32(rpc.KindOf(err)), pbsRefusal(err)
		return result
	}
	if v := req.GetVerb(); v == wire.ActRequest_CHECKPOINT || v == wire.ActRequest_SIGNAL ||
		v == wire.ActRequest_MESSAGE || v == wire.ActRequest_HOLD_CHECKS {
		return result // that goes to nodes, and changes no state here
	}
	before := act.queue.ChangeCount()
	act.loop.CommitEvents(act.markAdmitted(now, events, allowed)...)
	result.Id, result.Tasks = t.TaskSelector.String(), uint32(act.queue.ChangeCount()-before)
	if v := req.GetVerb(); v == wire.ActRequest_RUN && len(events) > 0 {
		result.Tasks = uint32(act.queue.RunNowStatus(t.TaskSelector.Job.Seq).Pending)
	} else if v == wire.ActRequest_RELEASE_NODES && len(events) > 0 {
		result.Tasks = releasedTasks(events[0])
	} else if v == wire.ActRequest_HOLD || v == wire.ActRequest_REMOVE || v == wire.ActRequest_RERUN {
		result.Tasks += act.runningTasks(t.TaskSelector)
	}
	return result
}

// DecideVerb decides on what changes the state of a job.
func (act *jobActions) DecideVerb(req *wire.ActRequest, t queue.TaskSelector, who queue.CallerIdentity,
	now time.Time) ([]queue.JobEvent, error) {
	switch v := req.GetVerb(); v {
	case wire.ActRequest_RELEASE, wire.ActRequest_RETRY, wire.ActRequest_RERUN, wire.ActRequest_RUN:
		if err := act.checkUncertain(act.queue, t); err != nil {
			return nil, err
		}
	}
	switch req.GetVerb() {
	case wire.ActRequest_HOLD:
		if req.GetForce() {
			return act.queue.LockTasks(now, who, t, req.GetReason())
		}
		return act.queue.HoldTasks(now, who, t, req.GetReason())
	case wire.ActRequest_RELEASE:
		if req.GetForce() {
			return act.queue.UnlockTasks(now, who, t)
		}
		return act.queue.ReleaseTasks(now, who, t)
	case wire.ActRequest_REMOVE:
		if req.GetOnlyEmpty() {
			if err := act.checkEmpty(t); err != nil {
				return nil, err
			}
		}
		return act.queue.RemoveTasks(now, who, t, req.GetReason(), req.GetForce())
	case wire.ActRequest_SUSPEND:
		return act.queue.SuspendTasks(now, who, t, req.GetReason())
	case wire.ActRequest_RESUME:
		return act.queue.ResumeTasks(now, who, t)
	case wire.ActRequest_RERUN:
		events, err := act.queue.RerunTasks(now, who, t, req.GetForce())
		if rpc.KindOf(err) == roost.Finished {
			events, err = act.queue.RetryTasks(now, who, t)
			return rerunEndedError(act.queue, t, events, err)
		}
		return events, err
	case wire.ActRequest_RUN:
		return act.queue.RunNow(now, who, t, req.GetNodes())
	case wire.ActRequest_RELEASE_NODES:
		return act.queue.ReleaseNodes(now, who, t, nodeRelease(req.GetNodeRelease()))
	case wire.ActRequest_RETRY:
		return act.queue.RetryTasks(now, who, t)
	case wire.ActRequest_ALTER:
		return act.decideAlter(now, who, t, req.GetAlteration())
	case wire.ActRequest_MOVE:
		return act.decideMove(now, who, t, req.GetQueue())
	case wire.ActRequest_FLOW:
		return act.decideFlow(now, who, t, req.GetFlow())
	case wire.ActRequest_UPDATE:
		events, _, err := act.decideUpdate(now, who, t, req.GetUpdate())
		return events, err
	}
	return nil, fmt.Errorf("verb %v: %w", req.GetVerb(), roost.Invalid)
}

// isNoop is what goes wrong when there is nothing to do.
func isNoop(k roost.ErrorKind) bool { return k == roost.Finished || k == roost.Conflict }

// runningTasks counts the tasks of a target that run: those that were told to end now
// change when they have.
func (act *jobActions) runningTasks(t queue.TaskSelector) (n uint32) {
	st, ok := act.queue.Status(t.Job.Seq)
	if !ok {
		return 0
	}
	for state, count := range st.Counts {
		if roost.TaskState(state).IsActive() {
			n += uint32(count)
		}
	}
	if n == 0 || len(t.Ranges) == 0 {
		return n
	}
	n = 0
	for _, r := range t.Ranges {
		for i := r.First; i <= r.Last && i < act.queue.TaskCount(t.Job.Seq); i++ {
			if one, ok := act.queue.TaskStatus(t.Job.Task(i)); ok && one.Task.State.IsActive() {
				n++
			}
		}
	}
	return n
}

// mustBeQueued returns an error that says why a job that is not in the queue cannot be
// changed. The job has ended, never existed, or is in another schedd's queue.
func (v *jobView) mustBeQueued(t queue.TaskSelector) error {
	if _, ok := v.queue.Status(t.Job.Seq); ok && t.Job.Host == v.node.Name {
		return nil
	}
	switch {
	case t.Job.Host == v.node.Name:
	case t.Job.Host == v.node.CellQueueName():
		if v.peerSchedds.HasPeer(t.Job.Host) {
			return fmt.Errorf("job %v: %w: it is in the queue of the cell, and not in that of this host: what is done "+
				"to jobs together needs them in one queue", t, roost.Invalid)
		}
		return fmt.Errorf("job %v: %w: no collector says where the queue of the cell is; try again, and see "+
			"roost cell --queue on a central manager", t, roost.Unavailable)
	case v.peerSchedds.HasPeer(t.Job.Host):
		return fmt.Errorf("job %v: %w: it is in %s's queue: on %s run roost token --user, then here the line that "+
			"it prints; or have root on a central manager give you the capability \"jobs\", see roost-admin(1)", t,
			roost.Unauthenticated, t.Job.Host, t.Job.Host)
	}
	if past, _, err := v.history.Job(t.Job.Seq); err == nil && t.Job.Host == v.node.Name {
		if _, err := past.LocateTasks(t); err != nil {
			return err
		}
		return fmt.Errorf("%v: %w", t, roost.Finished)
	}
	return fmt.Errorf("%v: %w: there is no such job here", t, roost.NotFound)
}
