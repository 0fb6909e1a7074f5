package pool

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/failpoint"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
)

// perform performs an effect of the claim table, as startd's performEffect does.
func (m *machineNode) perform(effect slot.Effect) {
	if m.enforcer != nil {
		m.enforcer.OnEffect(effect)
	}
	switch e := effect.(type) {
	case slot.CreateClaim:
		m.createClaim(e.Claim)
	case slot.AcceptClaim:
		m.sendAccepted(e)
	case slot.RejectClaim:
		m.sendRejected(e)
	case slot.RecordPlacement:
		if h := m.claimRunners[e.Claim.ID]; h != nil {
			h.setPlacement(e.Claim)
		}
	case slot.ResizeClaim, slot.ReportResized:
		m.performResize(effect)
	case slot.ReportReady:
		m.sendToSchedd(e.Claim.Schedd,
			&wire.FromStartd{Of: &wire.FromStartd_Ready{Ready: &wire.ClaimReady{Claim: uint64(e.Claim.ID)}}})
	case slot.CancelQueued:
		delete(m.programs, e.Claim.ID)
		m.exits[e.Claim.ID] = attemptExit(e.Attempt, wire.Cause(e.Cause), e.Reason)
	case slot.StartAttempt:
		a := m.programs[e.Claim.ID]
		delete(m.programs, e.Claim.ID)
		if h := m.claimRunners[e.Claim.ID]; h != nil {
			h.start(e.Attempt, a.GetProgram())
		}
	case slot.RejectActivation:
		m.declineClaim(e)
	case slot.VacateAttempt:
		if h := m.claimRunners[e.Claim.ID]; h != nil {
			h.vacate(e)
		}
	case slot.ReportStarted:
		m.sendToSchedd(e.Claim.Schedd, &wire.FromStartd{
			Of: &wire.FromStartd_Started{Started: &wire.Started{Attempt: reference(e.Attempt), Pid: 1}},
		})
	case slot.ReportExited:
		if m.pool.passFailpoint(m.hostNode, failpoint.StartdBeforeExitSent) {
			return
		}
		x := m.exitReport(e.Claim)
		x.Waiting = e.Claim.IsWaiting()
		m.sendToSchedd(e.Claim.Schedd, &wire.FromStartd{Of: &wire.FromStartd_Exited{Exited: x}})
	case slot.ReportLost:
		m.sendToSchedd(e.Claim.Schedd, &wire.FromStartd{
			Of: &wire.FromStartd_Lost{Lost: &wire.ClaimLost{Claim: uint64(e.Claim.ID), Reason: e.Reason}},
		})
	case slot.RenewLease:
		m.renew(e.Claim)
	case slot.DiscardAttempt:
		delete(m.exits, e.Claim.ID)
		if h := m.claimRunners[e.Claim.ID]; h != nil {
			h.dropAttempt(e.Attempt)
		}
	case slot.RemoveClaim:
		delete(m.exits, e.Claim.ID)
		delete(m.shown, e.Claim.ID)
		delete(m.programs, e.Claim.ID)
		if h := m.claimRunners[e.Claim.ID]; h != nil {
			h.removeAll()
		}
	case slot.CloseSession:
		m.closeSession(e.Session)
	}
}

func (m *machineNode) closeSession(id uint64) {
	if on := m.sessions[id]; on != nil {
		delete(m.sessions, id)
		m.pool.network().closeStream(on, 1)
	}
}

// sendAccepted tells the schedd that it has the claim.
func (m *machineNode) sendAccepted(e slot.AcceptClaim) {
	m.sendOnSession(e.Session, &wire.FromStartd{Of: &wire.FromStartd_Claim{Claim: &wire.ClaimReply{
		Grant: e.Claim.Grant.ID, Epoch: e.Claim.Grant.Epoch, Claim: uint64(e.Claim.ID),
		AdSequence: m.shown[e.Claim.ID], ScratchDomain: fileSystemDomain,
		Waiting: e.Claim.IsWaiting(), PredictedWait: int64(e.Claim.PredictedWait),
	}}})
}

// sendRejected tells the schedd why it does not get the claim.
func (m *machineNode) sendRejected(e slot.RejectClaim) {
	m.sendOnSession(e.Session, &wire.FromStartd{Of: &wire.FromStartd_Claim{Claim: &wire.ClaimReply{
		Grant: e.Grant.ID, Epoch: e.Grant.Epoch, Reason: e.Reason, AdSequence: m.ad.Sequence,
		ScratchDomain: fileSystemDomain,
	}}})
}

// renew moves the deadline that a claim's starter enforces. The observer gets the longest
// deadline that was requested, whatever the claim table decides.
func (m *machineNode) renew(c *slot.Claim) {
	h := m.claimRunners[c.ID]
	if h == nil {
		return
	}
	h.starter.deadline = c.Lease
	m.pool.observe(audit.Event{Type: audit.Renewed, Node: m.name, Claim: uint64(c.ID),
		Until: m.pool.loop.Now() + c.LeasePeriod})
}

func (m *machineNode) declineClaim(e slot.RejectActivation) {
	delete(m.programs, e.Claim)
	if e.NoClaim {
		m.sendToSchedd(e.Schedd, &wire.FromStartd{
			Of: &wire.FromStartd_Lost{Lost: &wire.ClaimLost{Claim: uint64(e.Claim), Reason: e.Reason}},
		})
		return
	}
	m.sendToSchedd(e.Schedd, &wire.FromStartd{
		Of: &wire.FromStartd_Exited{Exited: attemptExit(e.Attempt, wire.Cause_CAUSE_MACHINE, e.Reason)},
	})
}

// exitReport returns the exit report of the claim's attempt. If the claim runner has
// none, the machine is at fault.
func (m *machineNode) exitReport(c *slot.Claim) *wire.Exited {
	if x := m.exits[c.ID]; x != nil && attemptID(c.Schedd, x.GetAttempt()) == c.Attempt {
		return x
	}
	x := attemptExit(c.Attempt, wire.Cause_CAUSE_MACHINE, "its claim has ended under it")
	m.exits[c.ID] = x
	return x
}

// sendOnSession sends a message on a session, if it still exists.
func (m *machineNode) sendOnSession(session uint64, message *wire.FromStartd) {
	if on := m.sessions[session]; on != nil {
		m.pool.network().sendOn(on, 1, message)
	}
}

func (m *machineNode) sendToSchedd(schedd string, message *wire.FromStartd) {
	if id, ok := m.core.Session(schedd); ok {
		m.sendOnSession(id, message)
	}
}

// createClaim begins to write a claim to disk.
func (m *machineNode) createClaim(c *slot.Claim) {
	h := &claimRunner{machine: m, id: c.ID, hostLife: m.hostLife, claim: *c, limit: c.Resources}
	h.starter = &starterProcess{runner: h, deadline: c.Lease}
	h.setPlacement(c)
	m.claimRunners[c.ID] = h
	if m.shown[c.ID] == 0 {
		m.shown[c.ID] = m.ad.Sequence // the ad was made after the claim was created
	}
	takes, ok := m.writeTime()
	// not synced to disk
	m.scheduleEvent(m.pool.loop.Now()+takes/10, evReport, uint64(c.ID), &claimCreated{c.ID, ok})
}

// Reports of claim runners and starters to the startd.
type (
	claimCreated struct {
		claim slot.ClaimID
		ok    bool
	}
	attemptStarted struct {
		claim   slot.ClaimID
		starter *starterProcess
		attempt roost.AttemptID
	}
	attemptEnded struct {
		claim slot.ClaimID
		exit  *wire.Exited
	}
)

// handleReport handles a report.
func (m *machineNode) handleReport(x any) {
	switch x := x.(type) {
	case *claimCreated:
		h := m.claimRunners[x.claim]
		if h == nil {
			return
		}
		if !x.ok || m.diskFullUntil > m.pool.loop.Now() {
			m.core.ClaimFailed(m.bootTime(), x.claim, "the claim could not be written down: no space left on device")
			break
		}
		h.written = true
		if m.pool.passFailpoint(m.hostNode, failpoint.StartdAfterClaim) {
			return
		}
		m.core.ClaimCreated(x.claim)
		life := m.daemonLife
		if m.runEffects(); m.daemonLife != life || m.pool.passFailpoint(m.hostNode, failpoint.StartdBeforeStarter) {
			return
		}
		if h = m.claimRunners[x.claim]; h != nil {
			h.spawn()
		}
		if m.pool.passFailpoint(m.hostNode, failpoint.StartdAfterStarter) {
			return
		}
	case *attemptStarted:
		if s := x.starter; s.attempt == x.attempt && s.phase == phaseRunning {
			m.core.Started(m.bootTime(), x.claim, s.attempt)
		}
	case *healthChanged:
		m.reportHealth(x)
	case *loadMeasured:
		m.reportLoad(x)
	case *claimResize:
		m.resizeClaim(x)
	case guardConnected:
		m.guardFound()
	case guardTimeout:
		if x.awaited == m.guardTimeouts {
			m.guardLost()
		}
	case *observationsMsg:
		m.handleObservations(x)
	case *attemptEnded:
		if c, ok := m.core.Claim(x.claim); ok {
			m.exits[x.claim] = x.exit
			m.core.Ended(m.bootTime(), x.claim, attemptID(c.Schedd, x.exit.GetAttempt()))
		}
	}
	m.runEffects()
}

// noticePeriod returns the time between vacating a task and its kill, as its job asks.
func noticePeriod(p *wire.Program) time.Duration { return max(time.Duration(p.GetNoticeNs()), 0) }

func (m *machineNode) failpoints() []string {
	return []string{failpoint.StartdAfterClaim, failpoint.StartdBeforeStarter, failpoint.StartdAfterStarter,
		failpoint.StartdBeforeExitSent, failpoint.StartdInResize, failpoint.StartdAfterResize}
}
