package schedd

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/dispatch"
	"github.com/roost-batch/roost/schedd/queue"
)

// work is the queue as the dispatcher sees it: what it decides there goes into the present batch.
type work struct{ *Schedd }

// Ready implements dispatch.Work.
func (w work) Ready(id dispatch.RequestID) int {
	if r, ok := w.queue.Request(queue.RequestID(id)); ok && !w.stopped(r) {
		return r.Ready
	}
	return 0
}

// Lease implements dispatch.Work: what the job asks for, or what the schedd gives.
func (w work) Lease(id dispatch.RequestID) time.Duration {
	if r, ok := w.queue.Request(queue.RequestID(id)); ok && r.Lease > 0 {
		return r.Lease
	}
	return w.node.Schedd.JobLease
}

// Assign implements dispatch.Work.
func (w work) Assign(id dispatch.RequestID, node, address string, claim uint64) (roost.AttemptID, bool) {
	t, ok := w.queue.NextBut(queue.RequestID(id), w.keptFrom(node))
	if !ok { // whether the request is to be kept from the node as a whole the leader says: until then it has the claim
		t, ok = w.queue.Next(queue.RequestID(id))
	}
	if r, found := w.queue.Request(queue.RequestID(id)); !ok || found && w.stopped(r) {
		return roost.AttemptID{}, false
	}
	e, a, err := w.queue.Assign(w.at.now, t, node, address, claim)
	if err != nil {
		panic(err) // Next gives only what can be assigned
	}
	w.found(queue.RequestID(id))
	w.decide(e)
	return a, true
}

// Gang implements dispatch.Work.
func (w work) Gang(id dispatch.RequestID) (size int, ok bool) {
	return w.queue.Gang(queue.RequestID(id))
}

// Lead implements dispatch.Work.
func (w work) Lead(id dispatch.RequestID) (dispatch.RequestID, bool) {
	lead, ok := w.queue.Lead(queue.RequestID(id))
	return dispatch.RequestID(lead), ok
}

// AssignGang implements dispatch.Work.
func (w work) AssignGang(id dispatch.RequestID, seats []dispatch.Seat) ([]roost.AttemptID, bool) {
	if r, found := w.queue.Request(queue.RequestID(id)); found && w.stopped(r) {
		return nil, false
	}
	of := make([]queue.Seat, len(seats))
	for i, s := range seats {
		of[i] = queue.Seat{Node: s.Node, Address: s.Address, Claim: s.Claim, Request: queue.RequestID(s.Request)}
	}
	events, attempts, ok := w.queue.AssignGang(w.at.now, queue.RequestID(id), of)
	w.decide(events...)
	return attempts, ok
}

// Lose implements dispatch.Work.
func (w work) Lose(a roost.AttemptID, reason string) {
	w.stopTransfer(a)
	w.stopPull(a)
	if e, ok := w.queue.Lose(w.at.now, a, reason); ok {
		w.log.Info("attempt lost", "attempt", a, "reason", reason)
		w.astray(a)
		w.decide(e)
	}
}

// Live implements dispatch.Work.
func (w work) Live(a roost.AttemptID) bool { return w.queue.Live(a) }

// Within implements dispatch.Work.
func (w work) Within(id dispatch.RequestID) (time.Duration, string) {
	if r, ok := w.queue.Request(queue.RequestID(id)); ok {
		return r.Walltime, r.Reservation
	}
	return 0, "" // it has gone since
}

// Movable implements dispatch.Work.
func (w work) Movable(a roost.AttemptID) bool { return w.queue.Rerunnable(a.Task.Job.Seq) }

// resume takes up what the log knows as under way.
func (s *Schedd) resume() {
	var live []dispatch.Live
	for _, a := range s.queue.Active() {
		live = append(live, dispatch.Live{
			Attempt: a.Attempt, Request: dispatch.RequestID(a.Request.ID), Node: a.Node, Address: a.Address, Claim: a.Claim,
			Started: a.Started, Holds: a.Request.Resources,
		})
	}
	s.resumed = s.at.boot
	s.dispatch.Adopt(s.at.boot, live)
	s.queue.Mend()
	if len(live) > 0 {
		s.log.Info("attempts under way", "count", len(live))
	}
	s.follow(s.at.now)
}

// exitStatus turns the wire's form of an end into the queue's.
func exitStatus(x *wire.ExitStatus) *queue.Exit {
	return &queue.Exit{
		Code: x.GetCode(), Signal: x.GetSignal(), Core: x.GetCore(), Cause: queue.Cause(x.GetCause()), Reason: x.GetReason(),
		Wall: x.GetWall(), User: x.GetUserCpu(), System: x.GetSystemCpu(), MaxRSS: x.GetMaxRss(), Used: used(x.GetUsage()),
	}
}

// used is what a machine measured of an attempt that has ended, in whole KiB, so that most of the queue's records stay small.
func used(u *wire.TaskUsage) queue.Used {
	kib := func(n int64) int64 { return (min(max(n, 0), 1<<60) + 1023) >> 10 << 10 }
	return queue.Used{
		Peak: kib(u.GetPeakMemory()), Read: kib(u.GetReadBytes()), Written: kib(u.GetWriteBytes()), PeakGPU: kib(u.GetPeakGpuMemory()), Disk: kib(u.GetDisk()),
	}
}

// wireUsed is the way back; nil when nothing was measured.
func wireUsed(x *queue.Exit) *wire.TaskUsage {
	if x.Used == (queue.Used{}) {
		return nil
	}
	return &wire.TaskUsage{
		Wall: x.Wall, UserCpu: x.User, SystemCpu: x.System, PeakMemory: x.Used.Peak, ReadBytes: x.Used.Read, WriteBytes: x.Used.Written,
		PeakGpuMemory: x.Used.PeakGPU, Disk: x.Used.Disk,
	}
}

// wireExit is the way back.
func wireExit(x *queue.Exit) *wire.ExitStatus {
	if x == nil {
		return nil
	}
	return &wire.ExitStatus{
		Code: x.Code, Signal: x.Signal, Core: x.Core, Cause: wire.Cause(x.Cause), Reason: x.Reason,
		Wall: x.Wall, UserCpu: x.User, SystemCpu: x.System, MaxRss: x.MaxRSS, Usage: wireUsed(x),
	}
}
