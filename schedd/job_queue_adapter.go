package schedd

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/mutant"
	"github.com/roost-batch/roost/schedd/dispatch"
	"github.com/roost-batch/roost/schedd/queue"
)

// jobQueueAdapter is the queue as the dispatcher sees it: what it decides there goes into
// the present batch.
type jobQueueAdapter struct{ *Schedd }

// ReadyTasks implements dispatch.JobQueue.
func (w jobQueueAdapter) ReadyTasks(id dispatch.RequestID) int {
	if r, ok := w.queue.Request(queue.RequestID(id)); ok && !w.leader.IsRequestStopped(r) {
		return r.Ready
	}
	return 0
}

// Lease implements dispatch.JobQueue: what the job asks for, or what the schedd gives.
func (w jobQueueAdapter) Lease(id dispatch.RequestID) time.Duration {
	r, ok := w.queue.Request(queue.RequestID(id))
	switch {
	case ok && r.JobLease > 0:
		return r.JobLease
	case ok && (r.Service != nil || r.IsAlloc) && w.node.Schedd.ServiceLease > 0:
		return w.node.Schedd.ServiceLease
	}
	return w.node.Schedd.JobLease
}

// SilenceRules implements dispatch.JobQueue. A task of a service is lost when its machine
// has been silent for as long as the collectors wait before they say so, or when a
// replacement may start, if that is sooner.
func (w jobQueueAdapter) SilenceRules(id dispatch.RequestID) dispatch.SilenceRules {
	r, ok := w.queue.Request(queue.RequestID(id))
	if !ok || r.Service == nil {
		return dispatch.SilenceRules{}
	}
	s := dispatch.SilenceRules{NotedAfter: roost.SilentAfter, LostAfter: r.Service.LostAfter,
		Overlap: r.Service.Overlap}
	if s.LostAfter > 0 {
		s.NotedAfter = min(s.NotedAfter, s.LostAfter)
	}
	return s
}

// RecordSilence implements dispatch.JobQueue.
func (w jobQueueAdapter) RecordSilence(a roost.AttemptID, node string) {
	if e, ok := w.queue.RecordSilence(w.clock.now, a, node); ok {
		w.commitEvents(e)
	}
}

// RecordReturn implements dispatch.JobQueue.
func (w jobQueueAdapter) RecordReturn(a roost.AttemptID) {
	if e, ok := w.queue.RecordReturn(w.clock.now, a); ok {
		w.commitEvents(e)
	}
}

// Assign implements dispatch.JobQueue.
func (w jobQueueAdapter) Assign(id dispatch.RequestID, node, address string, claim uint64) (roost.AttemptID, bool) {
	t, ok := w.queue.NextTaskExcept(queue.RequestID(id), w.leader.AvoidedTasks(node))
	if !ok { // whether the request is to be kept from the node as a whole the leader says: until then it has the claim
		t, ok = w.queue.NextTask(queue.RequestID(id))
	}
	if r, found := w.queue.Request(queue.RequestID(id)); !ok || found && w.leader.IsRequestStopped(r) {
		return roost.AttemptID{}, false
	}
	e, a, err := w.queue.AssignNext(w.clock.now, t, node, address, claim)
	if err != nil {
		panic(err) // Next gives only what can be assigned
	}
	w.leader.NoteRestarted(queue.RequestID(id))
	w.commitEvents(e)
	return a, true
}

// ReusesClaim implements dispatch.JobQueue.
func (w jobQueueAdapter) ReusesClaim(t roost.TaskID) bool { return w.queue.ReusesClaim(t) }

// AssignTask implements dispatch.JobQueue.
func (w jobQueueAdapter) AssignTask(t roost.TaskID, node, address string, claim uint64) (roost.AttemptID, bool) {
	if alloc, inside := w.queue.LastAlloc(t); inside {
		e, a, ok := w.queue.AssignInside(w.clock.now, t, alloc, node, address, claim)
		if ok {
			w.commitEvents(e)
		}
		return a, ok
	}
	e, a, err := w.queue.AssignNext(w.clock.now, t, node, address, claim)
	if err != nil {
		return roost.AttemptID{}, false
	}
	w.commitEvents(e)
	return a, true
}

// InsideAllocs implements dispatch.JobQueue.
func (w jobQueueAdapter) InsideAllocs(id dispatch.RequestID) (dispatch.InsideAllocs, bool) {
	want, ok := w.queue.TasksInside(queue.RequestID(id))
	if !ok {
		return dispatch.InsideAllocs{}, false
	}
	r, _ := w.queue.Request(queue.RequestID(id))
	return dispatch.InsideAllocs{Allocs: want.Allocs, Anywhere: want.Anywhere,
		Resources: r.Resources}, true
}

// AssignInside implements dispatch.JobQueue.
func (w jobQueueAdapter) AssignInside(id dispatch.RequestID, alloc roost.TaskID, node, address string,
	claim uint64) (roost.AttemptID, bool) {
	t, ok := w.queue.NextInside(queue.RequestID(id), alloc)
	if !ok {
		return roost.AttemptID{}, false
	}
	e, a, ok := w.queue.AssignInside(w.clock.now, t, alloc, node, address, claim)
	if ok {
		w.commitEvents(e)
	}
	return a, ok
}

// NextGang implements dispatch.JobQueue.
func (w jobQueueAdapter) NextGang(id dispatch.RequestID) (size int, ok bool) {
	return w.queue.NextGang(queue.RequestID(id))
}

// GangRequest implements dispatch.JobQueue.
func (w jobQueueAdapter) GangRequest(id dispatch.RequestID) (dispatch.RequestID, bool) {
	lead, ok := w.queue.GangRequest(queue.RequestID(id))
	return dispatch.RequestID(lead), ok
}

// AssignGang implements dispatch.JobQueue.
func (w jobQueueAdapter) AssignGang(id dispatch.RequestID, seats []dispatch.GangClaim) ([]roost.AttemptID, bool) {
	if r, found := w.queue.Request(queue.RequestID(id)); found && w.leader.IsRequestStopped(r) {
		return nil, false
	}
	of := make([]queue.GangClaim, len(seats))
	for i, s := range seats {
		of[i] = queue.GangClaim{Node: s.Node, Address: s.Address, Claim: s.Claim, Request: queue.RequestID(s.Request)}
	}
	events, attempts, ok := w.queue.AssignGang(w.clock.now, queue.RequestID(id), of)
	w.commitEvents(events...)
	return attempts, ok
}

// RecordLost implements dispatch.JobQueue.
func (w jobQueueAdapter) RecordLost(a roost.AttemptID, reason string) {
	w.transfers.EndAttempt(a)
	if reason == dispatch.NeverArrived && !w.queue.IsRerunnable(a.Task.Job.Seq) {
		// its task is not run twice when it is run again
		if e, err := w.queue.RecordEnded(w.clock.now, a,
			&queue.AttemptExit{Cause: queue.CauseMachine, Reason: reason}); err == nil {
			w.commitEvents(e)
		}
		return
	}
	if e, ok := w.queue.RecordLost(w.clock.now, a, reason); ok {
		w.log.Info("attempt lost", "attempt", a, "reason", reason)
		w.leader.NoteNodeLost(a)
		w.commitEvents(e)
	}
}

// IsLive implements dispatch.JobQueue.
func (w jobQueueAdapter) IsLive(a roost.AttemptID) bool { return w.queue.IsLive(a) }

// RuntimeBound implements dispatch.JobQueue.
func (w jobQueueAdapter) RuntimeBound(id dispatch.RequestID) (time.Duration, string) {
	if r, ok := w.queue.Request(queue.RequestID(id)); ok {
		return r.Walltime, r.Reservation
	}
	return 0, "" // it has gone since
}

// IsMovable implements dispatch.JobQueue.
func (w jobQueueAdapter) IsMovable(a roost.AttemptID) bool {
	return w.queue.IsRerunnable(a.Task.Job.Seq)
}

// resumeLogged takes up what the log knows as under way.
func (s *Schedd) resumeLogged() {
	var live []dispatch.RecoveredAttempt
	for _, a := range s.queue.ActiveAttempts() {
		if s.replicated != nil && !a.StartTime && mutant.Active(mutant.UnstartedForgotten) {
			jobQueueAdapter{s}.RecordLost(a.Attempt, "its leader has died")
			continue
		}
		live = append(live, dispatch.RecoveredAttempt{
			Attempt: a.Attempt, Request: dispatch.RequestID(a.Request.ID), Node: a.Node, Address: a.Address,
			Claim:   a.Claim,
			Started: a.StartTime, Resources: a.Request.Resources,
			Alloc: a.Alloc.Task, AllocClaim: a.AllocClaim,
		})
	}
	s.resumed = s.clock.boot
	s.dispatch.Adopt(s.clock.boot, live)
	s.queue.RepairGangs()
	if len(live) > 0 {
		s.log.Info("attempts under way", "count", len(live))
	}
	s.react(s.clock.now)
}
