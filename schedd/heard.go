package schedd

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/plant"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/dispatch"
	"github.com/roost-batch/roost/schedd/queue"
)

// sessionBegan compares what a node has with what the books say.
func (s *Schedd) sessionBegan(n sessionUp, now time.Time) {
	p := s.peers[n.node]
	if p == nil {
		return
	}
	p.session = n.session
	if d := n.welcome.GetFileSystemDomain(); d != "" {
		s.domains[n.node] = d
	}
	present := make([]dispatch.Present, 0, len(n.welcome.GetClaims()))
	for _, c := range n.welcome.GetClaims() {
		present = append(present, dispatch.Present{
			Claim: c.GetClaim(), Grant: dispatch.GrantID{Epoch: c.GetEpoch(), ID: c.GetGrant()}, Attempt: s.attempt(c.GetAttempt()),
			Running: c.GetRunning(), Waiting: c.GetWaiting(), Placed: place(c.GetPlaced()), Exited: c.GetExited() != nil,
		})
	}
	s.dispatch.Connected(s.at.boot, n.node, present)
	for _, c := range n.welcome.GetClaims() {
		a := s.attempt(c.GetAttempt())
		if c.GetRunning() && s.queue.Live(a) && s.queue.NodeOf(a) == p.name {
			s.runs(a)
			s.stood(p.name, a, c.GetSuspended(), now)
		}
		if c.GetExited() != nil {
			s.exited(p, c.GetExited(), now)
		} else if f, ok := s.queue.Frozen(a); ok {
			s.freeze(f) // it may have been said while the node was away
		}
		if l, ok := s.queue.Limited(a); ok && c.GetExited() == nil {
			s.limit(l) // likewise
		}
	}
}

func (s *Schedd) sessionEnded(n sessionDown) {
	if p := s.peers[n.node]; p != nil && p.session == n.session {
		p.session = nil
		s.dispatch.Disconnected(s.at.boot, n.node)
	}
}

// heard takes in one message of a startd.
func (s *Schedd) heard(p *peerNode, m *wire.FromStartd, now time.Time) {
	switch m := m.GetOf().(type) {
	case *wire.FromStartd_Claim:
		c := m.Claim
		if d := c.GetScratchDomain(); d != "" {
			s.domains[p.name] = d
		}
		s.dispatch.ClaimAnswered(s.at.boot, p.name, dispatch.Reply{
			Grant: dispatch.GrantID{Epoch: c.GetEpoch(), ID: c.GetGrant()}, Claim: c.GetClaim(), AdSequence: c.GetAdSequence(), Reason: c.GetReason(),
			Waiting: c.GetWaiting(), Wait: time.Duration(c.GetPredictedWait()), Placed: place(c.GetPlaced()),
		})
	case *wire.FromStartd_Ready:
		s.dispatch.Ready(s.at.boot, p.name, m.Ready.GetClaim(), place(m.Ready.GetPlaced()))
	case *wire.FromStartd_Started:
		if a := s.attempt(m.Started.GetAttempt()); s.dispatch.Started(p.name, a) {
			s.runs(a)
		}
	case *wire.FromStartd_Exited:
		s.exited(p, m.Exited, now)
	case *wire.FromStartd_Renewed:
		s.dispatch.Heard(s.at.boot, p.name, m.Renewed.GetWord())
	case *wire.FromStartd_Lost:
		s.dispatch.ClaimLost(p.name, m.Lost.GetClaim(), m.Lost.GetReason())
	case *wire.FromStartd_Input:
		if s.queue.NodeOf(s.attempt(m.Input.GetAttempt())) == p.name { // another node is given no input of it
			s.inputWanted(p, m.Input, now)
		}
	case *wire.FromStartd_Usage:
		s.used(p.name, m.Usage)
	case *wire.FromStartd_Suspended:
		s.suspended(p, m.Suspended, now)
	case *wire.FromStartd_Reach:
		s.reachWanted(p, m.Reach)
	case *wire.FromStartd_Taken:
		s.taken(p, m.Taken, now)
	}
}

// runs records that the processes of an attempt run.
func (s *Schedd) runs(a roost.AttemptID) {
	if e, ok := s.queue.Start(s.at.now, a); ok {
		e.Place = s.dispatch.Placed(a)
		s.decideLazily(e)
	}
}

// exited takes in the end of an attempt: its output comes home first, and only then is the end recorded.
func (s *Schedd) exited(p *peerNode, e *wire.Exited, now time.Time) {
	a := s.attempt(e.GetAttempt())
	if st, ok := s.queue.TaskStatus(a.Task); ok && plant.Is(plant.OldNews) {
		a.Attempt = st.Task.Attempt
	}
	if !s.dispatch.Exited(s.at.boot, p.name, a) {
		return
	}
	if e.GetWaiting() {
		s.dispatch.PassedOn(s.at.boot, p.name, a)
	}
	if !s.waitForImage(p, a, e, now) {
		s.ending(p, a, e, now)
	}
}

// ending brings the output of an attempt home that has ended, and then records its end.
func (s *Schedd) ending(p *peerNode, a roost.AttemptID, e *wire.Exited, now time.Time) {
	if s.collectOutput(p, a, e) && !plant.Is(plant.EarlyEnd) {
		return // outputStored follows
	}
	s.finish(a, e.GetStatus(), now)
}

// finish records the end of an attempt. The acknowledgement and the claim's next task ride on the same batch.
func (s *Schedd) finish(a roost.AttemptID, status *wire.ExitStatus, now time.Time) {
	if status.GetCause() == wire.Cause_CAUSE_RESTORE && status.GetForgedImage() {
		s.forgedImage(a, status.GetReason(), now)
	}
	x := exitStatus(status)
	s.finishAs(a, x, status.GetOwnFiles(), x.Wall, now)
}

// finishAs is finish with how long the attempt ran, as far as that says something of its node.
func (s *Schedd) finishAs(a roost.AttemptID, x *queue.Exit, ownFiles bool, ran int64, now time.Time) {
	s.judged(a, x, ownFiles, ran, now)
	if x.Cause == queue.ByPreemption || x.Cause == queue.ByVacating {
		s.dispatch.Expelled(a)
	}
	e, err := s.queue.End(now, a, x)
	if err != nil {
		s.log.Warn("the end of an attempt came too late", "attempt", a, "error", err)
		return
	}
	s.decideLazily(e) // the next task on the claim, if there is one, makes the batch urgent
	s.dispatch.Finished(s.at.boot, a)
}
