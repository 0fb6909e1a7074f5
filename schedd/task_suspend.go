package schedd

import (
	"cmp"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/api"
	"github.com/roost-batch/roost/schedd/codec"
	"github.com/roost-batch/roost/schedd/dispatch"
	"github.com/roost-batch/roost/schedd/queue"
)

// What nodes are told of running attempts, and tell of them, beside their beginning and
// their end.

// sendFreeze tells a node to freeze an attempt, or to thaw it. A node that is away is
// told on its next session.
func (s *Schedd) sendFreeze(f queue.FreezeAttempt) {
	if st, ok := s.queue.TaskStatus(f.Attempt.Task); ok {
		s.sendTo(st.Task.Node, &wire.ToStartd{
			Of: &wire.ToStartd_Freeze{Freeze: &wire.Freeze{Attempt: codec.AttemptRef(f.Attempt), Frozen: f.Frozen}},
		})
	}
}

// onOwnerSuspension takes in that an attempt stands still for the owner of its machine,
// or goes on.
func (s *Schedd) onOwnerSuspension(p *nodeConn, m *wire.Suspended, now time.Time) {
	reason := ""
	if m.GetFrozen() {
		reason = cmp.Or(api.SanitizeSentence(m.GetReason()), "the owner of "+p.Name+" is back")
	}
	s.onUserSuspension(p.Name, codec.AttemptID(s.node.Name, m.GetAttempt()), reason, now)
}

func (s *Schedd) onUserSuspension(node string, a roost.AttemptID, reason string, now time.Time) {
	if s.queue.NodeOf(a) != node {
		return
	}
	if e, ok := s.queue.SuspendForOwner(now, a, node, api.SanitizeSentence(reason)); ok {
		s.commitEventsLazily(e)
	}
}

// sendLimits tells a node what it is to hold a running attempt to from now on. A node
// that is away is told on its next session.
func (s *Schedd) sendLimits(l queue.AttemptLimits) {
	s.sendTo(s.queue.NodeOf(l.Attempt), &wire.ToStartd{Of: &wire.ToStartd_Limit{Limit: &wire.Limit{
		Attempt: codec.AttemptRef(l.Attempt), WalltimeNs: int64(l.Walltime), CpuNs: int64(l.CPU),
	}}})
}

// sendResize asks a node for another size of a running attempt. A node that is away is
// asked on its next session.
func sendResize(s *Schedd, r queue.AttemptResize) {
	dispatch.NoteResizing(s.dispatch, r.Attempt)
	s.sendTo(s.queue.NodeOf(r.Attempt), &wire.ToStartd{Of: &wire.ToStartd_Resize{Resize: &wire.Resize{
		Attempt: codec.AttemptRef(r.Attempt), Resources: wire.FromResources(r.Resources), Ad: r.RequestAd,
	}}})
}

// recordResized takes in what a node has answered about the size of an attempt. A node
// speaks of its own attempts, and of the size that it was asked for.
func recordResized(s *Schedd, p *nodeConn, m *wire.Resized, now time.Time) {
	a := codec.AttemptID(s.node.Name, m.GetAttempt())
	if s.queue.NodeOf(a) != p.Name {
		return
	}
	refusal := api.SanitizeSentence(m.GetReason())
	if wanted, ok := s.queue.WantedSize(a); ok && wanted.RequestAd != "" && refusal == "" && !m.GetReadsAd() {
		refusal = "its machine runs an older release, which does not say whether it satisfies the requirements"
	}
	e, ok := s.queue.RecordResize(now, a, m.GetResources().Vector(), refusal)
	if !ok {
		return
	}
	s.commitEvents(e)
	if r, size, live := s.queue.AttemptSize(a); live {
		dispatch.Resized(s.dispatch, a, dispatch.RequestID(r), size)
	}
}
