package schedd

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/mutant"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/tasktrace"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/api"
	"github.com/roost-batch/roost/schedd/codec"
	"github.com/roost-batch/roost/schedd/dispatch"
	"github.com/roost-batch/roost/schedd/flock"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/transfer"
)

// onSessionOpened compares what a node has with what the books say.
func (s *Schedd) onSessionOpened(n sessionOpened, now time.Time) {
	p := s.peers[n.node]
	if p == nil {
		return
	}
	p.session = n.session
	if d := n.welcome.GetFileSystemDomain(); d != "" && !flock.IsElsewhere(n.node) {
		s.transfers.SetDomain(n.node, d)
	}
	noteNodeEnd(s, n)
	present := make([]dispatch.ReportedClaim, 0, len(n.welcome.GetClaims()))
	for _, c := range n.welcome.GetClaims() {
		present = append(present, dispatch.ReportedClaim{
			Claim: c.GetClaim(), Grant: grantOf(s, n.node, c.GetEpoch(), c.GetGrant()),
			Attempt: codec.AttemptID(s.node.Name, c.GetAttempt()),
			Running: c.GetRunning(), Waiting: c.GetWaiting(), Placement: codec.EncodePlacement(c.GetPlaced()),
			Exited: c.GetExited() != nil,
		})
	}
	s.dispatch.Connected(s.clock.boot, n.node, present)
	for _, c := range n.welcome.GetClaims() {
		a := codec.AttemptID(s.node.Name, c.GetAttempt())
		if c.GetRunning() && s.queue.IsLive(a) && s.queue.NodeOf(a) == p.Name {
			s.recordStarted(a)
			s.onUserSuspension(p.Name, a, c.GetSuspended(), now)
			transfer.NoteSecrets(s.transfers, a, c.GetSecrets())
		}
		if c.GetExited() != nil {
			s.onExited(p, c.GetExited(), now)
		} else if f, ok := s.queue.WantFrozen(a); ok {
			s.sendFreeze(f) // it may have been said while the node was away
		}
		if l, ok := s.queue.AttemptLimits(a); ok && c.GetExited() == nil {
			s.sendLimits(l) // likewise
		}
		if r, ok := s.queue.WantedSize(a); ok && c.GetExited() == nil {
			sendResize(s, r) // likewise
		}
		if c.GetExited() == nil && s.queue.HasReleasedNodes(a) {
			s.sendHostFiles(a)
		}
	}
}

// noteNodeEnd takes in how long a pilot still lives. A node that was silent for longer
// than that is not asked.
func noteNodeEnd(s *Schedd, n sessionOpened) {
	end := roost.BootTime(0)
	if left := n.welcome.GetLeftNs(); left != 0 {
		end = s.clock.boot + roost.BootTime(max(left, 1))
	}
	dispatch.SetNodeEnd(s.dispatch, n.node, end)
}

func (s *Schedd) onSessionClosed(n sessionClosed) {
	if p := s.peers[n.node]; p != nil && p.session == n.session {
		p.session = nil
		s.dispatch.Disconnected(s.clock.boot, n.node)
		dispatch.NoteSilence(s.dispatch, n.node, rpc.SilenceBefore(n.err))
	}
}

// onStartdMessage takes in one message of a startd.
func (s *Schedd) onStartdMessage(p *nodeConn, m *wire.FromStartd, now time.Time) {
	switch m := m.GetOf().(type) {
	case *wire.FromStartd_Claim:
		c := m.Claim
		tasktrace.Mark(tasktrace.Claimed, tasktrace.Task{})
		if d := c.GetScratchDomain(); d != "" && !flock.IsElsewhere(p.Name) {
			s.transfers.SetDomain(p.Name, d)
		}
		s.dispatch.ClaimAnswered(s.clock.boot, p.Name, dispatch.ClaimReply{
			Grant: grantOf(s, p.Name, c.GetEpoch(), c.GetGrant()), Claim: c.GetClaim(),
			AdSequence: c.GetAdSequence(), Reason: c.GetReason(),
			Waiting: c.GetWaiting(), WaitTime: time.Duration(c.GetPredictedWait()),
			Placement: codec.EncodePlacement(c.GetPlaced()), Displaced: codec.PreemptionParties(c.GetDisplaced()),
		})
	case *wire.FromStartd_Ready:
		s.dispatch.Allocated(s.clock.boot, p.Name, m.Ready.GetClaim(), codec.EncodePlacement(m.Ready.GetPlaced()))
	case *wire.FromStartd_Started:
		if a := codec.AttemptID(s.node.Name, m.Started.GetAttempt()); s.dispatch.Started(p.Name, a) {
			s.recordStarted(a)
		}
	case *wire.FromStartd_Exited:
		s.onExited(p, m.Exited, now)
	case *wire.FromStartd_Renewed:
		s.dispatch.LeaseRenewed(s.clock.boot, p.Name, m.Renewed.GetWord())
	case *wire.FromStartd_Lost:
		s.dispatch.ClaimLost(p.Name, m.Lost.GetClaim(), m.Lost.GetReason())
	case *wire.FromStartd_Input:
		if s.queue.NodeOf(codec.AttemptID(s.node.Name,
			m.Input.GetAttempt())) == p.Name { // another node is given no input of it
			s.transfers.OnInputRequest(&p.StartdNode, m.Input, now)
		}
	case *wire.FromStartd_Usage:
		s.service.OnUsageReport(p.Name, m.Usage)
		noteUse(s, p, m.Usage)
	case *wire.FromStartd_Suspended:
		s.onOwnerSuspension(p, m.Suspended, now)
	case *wire.FromStartd_Health:
		recordHealth(s, p, m.Health, now)
	case *wire.FromStartd_Resized:
		recordResized(s, p, m.Resized, now)
	case *wire.FromStartd_Metric:
		noteMetric(s, p, m.Metric)
	case *wire.FromStartd_Container:
		noteContainer(s, p, m.Container, now)
	case *wire.FromStartd_Reach:
		s.onSpawnRequest(p, m.Reach)
	case *wire.FromStartd_Taken:
		s.transfers.OnCheckpointTaken(&p.StartdNode, m.Taken, now)
	}
}

// noteContainer takes in how far a machine is with the container image of an attempt.
func noteContainer(s *Schedd, p *nodeConn, m *wire.ContainerProgress, now time.Time) {
	a := codec.AttemptID(s.node.Name, m.GetAttempt())
	if s.queue.NodeOf(a) != p.Name {
		return
	}
	if m.GetWaits() != "" {
		m.Waits = api.SanitizeSentence(m.GetWaits())
	}
	transfer.NoteContainer(s.transfers, a, m, now)
}

// recordStarted records that the processes of an attempt run.
func (s *Schedd) recordStarted(a roost.AttemptID) {
	if e, ok := s.queue.RecordStarted(s.clock.now, a); ok {
		e.Placement, e.Displaced = s.dispatch.Placement(a), dispatch.TakeDisplaced(s.dispatch, a)
		s.commitEventsWithin(backgroundCommitDelay, e)
	}
}

// onExited takes in the end of an attempt: its output comes home first, and only then is
// the end recorded.
func (s *Schedd) onExited(p *nodeConn, e *wire.Exited, now time.Time) {
	tasktrace.MarkAttempt(tasktrace.Returned, e.GetAttempt())
	a := codec.AttemptID(s.node.Name, e.GetAttempt())
	if st, ok := s.queue.TaskStatus(a.Task); ok && mutant.Active(mutant.StaleExitAccepted) {
		a.Attempt = st.Task.Attempt
	}
	if !s.dispatch.Exited(s.clock.boot, p.Name, a) {
		return
	}
	if p.elsewhere != nil {
		e = boundEndElsewhere(s, a, e, now)
	}
	if e.GetStatus().GetBegun() { // its start was not reported, and the job may be one that runs once
		s.recordStarted(a)
	}
	if e.GetWaiting() {
		s.dispatch.Yielded(s.clock.boot, p.Name, a)
	}
	if len(e.GetWindows()) > 0 {
		s.service.OnExitWindows(a, e.GetWindows())
	}
	if !s.transfers.EndWaitsForImage(&p.StartdNode, a, e, now) {
		s.transfers.FetchOutputThenFinish(&p.StartdNode, a, e, now)
	}
}

// recordEnded records the end of an attempt. The acknowledgement and the claim's next
// task ride on the same batch.
func (s *Schedd) recordEnded(a roost.AttemptID, status *wire.ExitStatus, now time.Time) {
	if status.GetCause() == wire.Cause_CAUSE_RESTORE && status.GetForgedImage() {
		s.leader.ReportForgedImage(a, status.GetReason(), now)
		if e, ok := s.queue.RejectOrigin(now, a, status.GetReason()); ok { // nobody is to try it again
			s.commitEventsLazily(e)
		}
	}
	noteRanksEnded(s, a, status)
	x := codec.QueueExit(status)
	s.recordEndedWithRuntime(a, x, status.GetOwnFiles(), x.Wall, now)
}

// recordEndedWithRuntime is finish with how long the attempt ran, as far as that says
// something of its node.
func (s *Schedd) recordEndedWithRuntime(a roost.AttemptID, x *queue.AttemptExit, ownFiles bool, ran int64,
	now time.Time) {
	s.leader.ReportOutcome(a, x, ownFiles, ran, now)
	if x.Cause == queue.CausePreemption || x.Cause == queue.CauseVacate {
		s.dispatch.Evicted(a)
	}
	e, err := s.queue.RecordEnded(now, a, x)
	if err != nil {
		s.log.Warn("the end of an attempt came too late", "attempt", a, "error", err)
		return
	}
	s.commitEventsLazily(e) // the next task on the claim, if there is one, makes the batch urgent
	s.dispatch.Finished(s.clock.boot, a)
}
