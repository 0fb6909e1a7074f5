package schedd

import (
	"cmp"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// What nodes are told of running attempts, and tell of them, beside their beginning and their end.

// freeze tells a node to freeze an attempt, or to thaw it. A node that is away is told on its next session.
func (s *Schedd) freeze(f queue.Freeze) {
	if st, ok := s.queue.TaskStatus(f.Attempt.Task); ok {
		s.say(st.Task.Node, &wire.ToStartd{Of: &wire.ToStartd_Freeze{Freeze: &wire.Freeze{Attempt: ref(f.Attempt), Frozen: f.Frozen}}})
	}
}

// suspended takes in that an attempt stands still for the owner of its machine, or goes on.
func (s *Schedd) suspended(p *peerNode, m *wire.Suspended, now time.Time) {
	reason := ""
	if m.GetFrozen() {
		reason = cmp.Or(sentence(m.GetReason()), "the owner of "+p.name+" is back")
	}
	s.stood(p.name, s.attempt(m.GetAttempt()), reason, now)
}

func (s *Schedd) stood(node string, a roost.AttemptID, reason string, now time.Time) {
	if s.queue.NodeOf(a) != node {
		return
	}
	if e, ok := s.queue.Stood(now, a, node, sentence(reason)); ok {
		s.decideLazily(e)
	}
}

// takeCheckpoints asks the nodes of a target's running tasks for checkpoints, and returns how many were asked for.
func (s *Schedd) takeCheckpoints(now time.Time, who queue.Submitter, t queue.Target) (n uint32, err error) {
	attempts, err := s.queue.Savable(now, who, t)
	if err != nil {
		return 0, err
	}
	for _, a := range attempts {
		st, _ := s.queue.TaskStatus(a.Task)
		if s.sayLazily(st.Task.Node, &wire.ToStartd{Of: &wire.ToStartd_Checkpoint{Checkpoint: &wire.TakeCheckpoint{Attempt: ref(a), Reason: asked}}}) {
			n++
		}
	}
	s.pending.urgent = s.pending.urgent || n > 0
	if n == 0 {
		return 0, fmt.Errorf("%v: %w: its node does not answer", t, roost.Unavailable)
	}
	return n, nil
}

// spoiled drops an image that was kept and cannot be sent. The attempt is given up, and the next one goes on from the image before.
func (s *Schedd) spoiled(n inputSent, bad spoiledImage, now time.Time) {
	s.log.Error("a kept checkpoint cannot be used", "attempt", n.attempt, "checkpoint", bad.sequence, "error", bad.why)
	if e, ok := s.queue.Spoil(now, n.attempt.Task, bad.sequence, bad.why); ok {
		s.decide(e)
	}
	s.say(n.node, &wire.ToStartd{Of: &wire.ToStartd_Vacate{Vacate: &wire.Vacate{
		Attempt: ref(n.attempt), Cause: wire.Cause_CAUSE_VACATED, Fast: true, Reason: bad.Error(),
	}}})
}

// limit tells a node what it is to hold a running attempt to from now on. A node that is away is told on its next session.
func (s *Schedd) limit(l queue.Limit) {
	s.say(s.queue.NodeOf(l.Attempt), &wire.ToStartd{Of: &wire.ToStartd_Limit{Limit: &wire.Limit{
		Attempt: ref(l.Attempt), WalltimeNs: int64(l.Walltime), CpuNs: int64(l.CPU),
	}}})
}
