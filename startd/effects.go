package startd

import (
	"crypto/rand"
	"encoding/hex"

	"github.com/roost-batch/roost/internal/attack"
	"github.com/roost-batch/roost/internal/failpoint"
	"github.com/roost-batch/roost/internal/tasktrace"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/claim"
	"github.com/roost-batch/roost/startd/slot"
)

// performEffect does one effect, without waiting for anything.
func (l *machineLoop) performEffect(effect slot.Effect) {
	if l.ownerState != nil {
		l.ownerState.OnEffect(effect)
	}
	switch e := effect.(type) {
	case slot.CreateClaim:
		l.createClaim(e.Claim)
	case slot.AcceptClaim:
		l.answerClaim(e.Session, e.Claim)
	case slot.RejectClaim:
		l.logRefusal("claim refused", "grant", e.Grant.ID, "epoch", e.Grant.Epoch, "reason", e.Reason)
		l.sendOn(e.Session, &wire.FromStartd{Of: &wire.FromStartd_Claim{Claim: &wire.ClaimReply{
			Grant: e.Grant.ID, Epoch: e.Grant.Epoch, Reason: e.Reason, AdSequence: nextAdSequence(l),
			ScratchDomain: l.host.node.FileSystemDomain,
		}}})
	case slot.RecordPlacement:
		l.sendCommand(e.Claim, claim.PlacementCmd{Placement: *l.savedPlacement(e.Claim), Cores: l.boundCores(e.Claim)})
		rebindOthers(l, e.Claim)
	case slot.ResizeClaim, slot.ReportResized:
		performResize(l, effect)
	case slot.ReportReady:
		l.sendTo(e.Claim.Schedd, &wire.FromStartd{Of: &wire.FromStartd_Ready{Ready: &wire.ClaimReady{
			Claim: uint64(e.Claim.ID), Placed: l.wirePlacement(e.Claim),
		}}})
	case slot.CancelQueued:
		l.recordCancelled(e)
	case slot.StartAttempt:
		l.startAttempt(e)
	case slot.RejectActivation:
		l.rejectActivation(e)
	case slot.VacateAttempt:
		l.sendCommand(e.Claim, claim.VacateCmd{ID: e.Attempt, Cause: wire.Cause(e.Cause), Fast: e.Fast,
			Reason: e.Reason, Notice: l.maxNotice})
	case slot.ReportStarted:
		l.sendTo(e.Claim.Schedd, &wire.FromStartd{Of: &wire.FromStartd_Started{Started: &wire.Started{
			Attempt: wire.FromAttempt(e.Attempt), Pid: l.pids[e.Claim.ID],
		}}})
	case slot.ReportExited:
		failpoint.Point(failpoint.StartdBeforeExitSent)
		if x := l.exitReport(e.Claim); x != nil {
			x.Waiting = e.Claim.IsWaiting()
			tasktrace.MarkAttempt(tasktrace.Reported, x.GetAttempt())
			l.sendTo(e.Claim.Schedd, &wire.FromStartd{Of: &wire.FromStartd_Exited{Exited: x}})
			if attack.Is(attack.RepeatedEnds) {
				l.sendHostileEnds(e.Claim.Schedd, x)
			}
		}
	case slot.ReportLost:
		l.sendTo(e.Claim.Schedd, &wire.FromStartd{Of: &wire.FromStartd_Lost{Lost: &wire.ClaimLost{
			Claim: uint64(e.Claim.ID), Reason: e.Reason}}})
	case slot.ThrottleCPU, slot.SetMemorySlack:
		performLimitChange(l, effect)
	case slot.RenewLease:
		l.sendCommand(e.Claim, claim.RenewLeaseCmd{Deadline: e.Claim.Lease})
	case slot.DiscardAttempt:
		delete(l.exits, e.Claim.ID)
		l.sendCommand(e.Claim, claim.DiscardCmd{ID: e.Attempt})
	case slot.RemoveClaim:
		releaseCores(l, e.Claim)
		delete(l.exits, e.Claim.ID)
		delete(l.pids, e.Claim.ID)
		delete(l.programs, e.Claim.ID)
		l.sendCommand(e.Claim, claim.RemoveCmd{})
	case slot.CloseSession:
		if s := l.sessions[e.Session]; s != nil {
			s.closeSession()
		}
		delete(l.sessions, e.Session)
	}
}

// performLimitChange does an effect that changes a limit of a claim.
func performLimitChange(l *machineLoop, effect slot.Effect) {
	switch e := effect.(type) {
	case slot.ThrottleCPU:
		l.metrics.setThrottled(e.Claim.ID, e.Claim.CPUCap > 0)
		l.sendCommand(e.Claim, claim.ThrottleCmd{CPUMax: e.Claim.CPUCap})
	case slot.SetMemorySlack:
		l.sendCommand(e.Claim, claim.MemorySlackCmd{Slack: e.Claim.MemorySlack})
	}
}

// sendCommand gives the runner of a claim something to do.
func (l *machineLoop) sendCommand(c *slot.Claim, what any) {
	if h := l.runners[c.ID]; h != nil {
		h.Send(what)
	}
}

func (l *machineLoop) createClaim(c *slot.Claim) {
	cookie := make([]byte, 16)
	rand.Read(cookie)
	as := l.rights[c.ID]
	delete(l.rights, c.ID)
	h := l.host.claims.NewRunner(claim.File{
		ID: uint64(c.ID), Epoch: c.Grant.Epoch, Grant: c.Grant.ID, Schedd: c.Schedd, Owner: c.Owner, About: c.Info,
		UID: c.UID, GID: c.GID, Rights: &as,
		Class: c.Class, Inside: uint64(c.Inside), MayWait: c.CanQueue, Resources: c.Resources,
		Placed: l.savedPlacement(c), Cores: l.boundCores(c), Ports: c.Ports, PortJob: c.PortJob,
		Lease: c.LeasePeriod, BootID: l.host.boot, Cookie: hex.EncodeToString(cookie),
	}, l.spares.take(c.ID))
	l.runners[c.ID] = h
	if l.firstAdSequence[c.ID] == 0 {
		l.firstAdSequence[c.ID] = nextAdSequence(l)
	}
	l.host.log.Info("claim made", "claim", c.ID, "grant", c.Grant.ID, "epoch", c.Grant.Epoch, "schedd", c.Schedd,
		"owner", c.Owner, "runs as", as.UID)
	go h.Run()
	h.Send(claim.CreateCmd{Lease: c.LeasePeriod})
	rebindOthers(l, c)
}

func (l *machineLoop) answerClaim(session uint64, c *slot.Claim) {
	l.sendOn(session, &wire.FromStartd{Of: &wire.FromStartd_Claim{Claim: &wire.ClaimReply{
		Grant: c.Grant.ID, Epoch: c.Grant.Epoch, Claim: uint64(c.ID), AdSequence: l.firstAdSequence[c.ID],
		ScratchDomain: l.host.node.FileSystemDomain,
		Waiting:       c.IsWaiting(), PredictedWait: int64(c.PredictedWait), Placed: l.wirePlacement(c),
		Displaced: wire.FromParties(c.Displaced),
	}}})
}

// rejectActivation tells a schedd that an attempt does not run, which is no fault of its
// own.
func (l *machineLoop) rejectActivation(e slot.RejectActivation) {
	l.rejectActivationFor(e, wire.Cause_CAUSE_MACHINE)
}

func (l *machineLoop) rejectActivationFor(e slot.RejectActivation, cause wire.Cause) {
	if c, ok := l.table.Claim(e.Claim); !ok ||
		c.Schedd == e.Schedd && l.programs[e.Claim].GetAttempt().AttemptID(e.Schedd) == e.Attempt {
		delete(l.programs, e.Claim)
	}
	l.logRefusal("attempt declined", "attempt", e.Attempt, "reason", e.Reason)
	if e.NoClaim {
		l.sendTo(e.Schedd, &wire.FromStartd{Of: &wire.FromStartd_Lost{Lost: &wire.ClaimLost{Claim: uint64(e.Claim),
			Reason: e.Reason}}})
		return
	}
	l.sendTo(e.Schedd, &wire.FromStartd{Of: &wire.FromStartd_Exited{Exited: &wire.Exited{
		Attempt: wire.FromAttempt(e.Attempt), Status: &wire.ExitStatus{Cause: cause, Reason: e.Reason},
	}}})
}

// exitReport is the news of the end of the claim's attempt. One that ended without its
// runner's doing is the machine's fault.
func (l *machineLoop) exitReport(c *slot.Claim) *wire.Exited {
	if x := l.exits[c.ID]; x != nil && x.GetAttempt().AttemptID(c.Schedd) == c.Attempt {
		if x.GetStatus().GetCause() == wire.Cause_CAUSE_PREEMPTED && x.Status.Preemptor == nil && c.Preemptor != nil {
			x.Status.Preemptor = wire.FromParty(*c.Preemptor)
		}
		return x
	}
	x := &wire.Exited{
		Attempt: wire.FromAttempt(c.Attempt), Status: &wire.ExitStatus{Cause: wire.Cause_CAUSE_MACHINE,
			Reason: "its claim has ended under it"},
	}
	l.exits[c.ID] = x
	return x
}
