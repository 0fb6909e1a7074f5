package schedd

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/attack"
	"github.com/roost-batch/roost/internal/failpoint"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/codec"
	"github.com/roost-batch/roost/schedd/dispatch"
	"github.com/roost-batch/roost/schedd/flock"
	"github.com/roost-batch/roost/schedd/queue"
)

// runEffects carries the dispatcher's effects out, in order.
func (s *Schedd) runEffects(effects []dispatch.Effect, now time.Time) {
	for _, e := range effects {
		switch e := e.(type) {
		case dispatch.ConnectNode:
			s.connectNode(e.Node, e.Address)
		case dispatch.DisconnectNode:
			s.disconnectNode(e.Node)
		case dispatch.RequestClaim:
			failpoint.Point(failpoint.ScheddBeforeClaim)
			s.requestClaim(e.Claim)
		case dispatch.ActivateClaim:
			if !holdForHook(s, e) {
				s.activate(e, now)
			}
		case dispatch.VacateAttempt:
			cause := wire.Cause_CAUSE_REMOVED
			if e.Order.Checkpoint {
				cause = wire.Cause_CAUSE_VACATED
			}
			if endHeldStart(s, e, now) {
				continue
			}
			s.sendTo(e.Node, &wire.ToStartd{Of: &wire.ToStartd_Vacate{Vacate: &wire.Vacate{
				Attempt: codec.AttemptRef(e.Attempt), Cause: cause, Fast: e.Order.WithoutNotice, Reason: e.Order.Reason,
			}}})
		case dispatch.AcknowledgeExit:
			s.transfers.StopTransfer(e.Attempt)
			s.sendToLazily(e.Node, &wire.ToStartd{Of: &wire.ToStartd_Acknowledge{Acknowledge: &wire.Acknowledge{
				Attempts: []*wire.AttemptRef{codec.AttemptRef(e.Attempt)},
			}}})
		case dispatch.ReleaseClaim:
			s.sendTo(e.Node, &wire.ToStartd{Of: &wire.ToStartd_Release{Release: &wire.ReleaseClaim{Claim: e.Claim}}})
		case dispatch.RenewLeases:
			s.renewLeases(e)
			renewNameRights(s, e.Node)
		case dispatch.GrantResult:
			s.metrics.countGrantResult(e)
			if l := leaderOfGrant(s, e.Grant.Epoch); l != nil {
				l.SendGrantResult(e)
			}
		}
	}
}

// logWaitLimit is how long a write of the log may take before leases are renewed without
// it.
const logWaitLimit = time.Second

// renewLeases tells a node that its leases go on. That rests on nothing that is to be
// written: as long as the log cannot be, for want of room or because its disk stands
// still, it goes out before all that waits, or every task would end with its lease.
func (s *Schedd) renewLeases(e dispatch.RenewLeases) {
	m := &wire.ToStartd{Of: &wire.ToStartd_Renew{Renew: &wire.RenewLeases{Heard: e.LastMessage,
		SinceNs: int64(e.Since)}}}
	began, p := roost.BootTime(s.logWriteSince.Load()), s.peers[e.Node]
	if began > 0 && s.clock.boot-began > logWaitLimit && p != nil && p.session != nil {
		if s.replicated == nil {
			p.session.out.Put(m)
		} else {
			s.unconfirmed.send(s.daemonContext, s.replicated.Confirm, outgoingMessage{e.Node, p.session, m})
		}
		return
	}
	s.sendTo(e.Node, m)
}

// connectNode begins the upkeep of a session with a node; a node that has moved is
// reached anew.
func (s *Schedd) connectNode(node, address string) {
	s.disconnectNode(node)
	s.peers[node] = s.effects.connect(node, address)
}

func (s *Schedd) disconnectNode(node string) {
	if p := s.peers[node]; p != nil {
		p.stop()
		delete(s.peers, node)
	}
}

// requestClaim asks for a claim, unless its request has gone since the grant arrived.
// Then the request was removed, or was altered and asks for something else now.
func (s *Schedd) requestClaim(c *dispatch.Claim) {
	r, ok := s.queue.Request(queue.RequestID(c.Request))
	if !ok {
		s.dispatch.ClaimAnswered(s.clock.boot, c.Node,
			dispatch.ClaimReply{Grant: c.Grant.GrantID, Reason: dispatch.UnwantedClaim})
		return
	}
	if p := s.peers[c.Node]; p != nil {
		if why := p.session.refusesOwner(r.Owner, s.node.Name); why != "" {
			s.log.Warn("no claim was asked for", "node", c.Node, "owner", r.Owner, "why", why)
			s.dispatch.ClaimAnswered(s.clock.boot, c.Node, dispatch.ClaimReply{Grant: c.Grant.GrantID, Reason: why})
			return
		}
	}
	m := s.claimRequest(c, r)
	s.sendTo(c.Node, &wire.ToStartd{Of: &wire.ToStartd_Claim{Claim: m}})
	s.attackGrant(c.Node, m)
}

// claimRequest builds the message that asks a startd for a claim. It has the grant as it
// was made, and the needs from the request's own ad.
func (s *Schedd) claimRequest(c *dispatch.Claim, r *queue.Request) *wire.ClaimRequest {
	m := &wire.ClaimRequest{
		Grant: c.Grant.ID, Epoch: c.Grant.Epoch, Capability: c.Grant.Token, Owner: r.Owner, Ad: r.Ad,
		Resources: wire.FromResources(c.Resources), LeaseS: uint32(c.Lease / time.Second), Uid: r.UID, Gid: r.GID,
		AppClass: r.Class, MayWait: c.MayWait && r.Class == roost.AppBatch, Band: r.Band.String(), Group: r.Group,
		Victims: c.Grant.Victims, Why: c.Grant.VictimReason,
		ClaimBy: int64(c.Grant.ClaimBy), GroupChosen: s.users.IsSecondaryGroup(r.UID, r.GID),
	}
	m.Alloc = c.Grant.Alloc
	claimElsewhere(s, c.Node, m)
	if attack.Is(attack.SystemGID) {
		m.Gid = 42
	}
	if attack.Is(attack.ImpossibleUID) {
		m.Uid = 1<<32 - 1
	}
	m.Ports, m.PortRights = wire.FromPortRequests(r.Ports), c.Grant.PortRights
	if job, ok := s.queue.NextJob(r.ID); ok && (len(m.Victims) > 0 || len(m.Ports) > 0) {
		m.Job = job.String()
	}
	return m
}

// activate sends an attempt to its claim. Its assignment is in the batch that this
// message rides on.
func (s *Schedd) activate(e dispatch.ActivateClaim, now time.Time) {
	program, hasTransfers, err := s.transfers.BuildProgram(e.Attempt, e.Node)
	if err != nil {
		s.failUnlaunchable(e, err, now)
		return
	}
	if flock.IsElsewhere(e.Node) {
		program.Checkpoint = nil // its users are others there: no machine here could go on from an image
	} else {
		addNameRight(s, e.Attempt, program)
	}
	m := &wire.ToStartd{Of: &wire.ToStartd_Activate{Activate: &wire.Activate{
		Claim: e.Claim, Attempt: codec.AttemptRef(e.Attempt), Program: program, HoldForInput: hasTransfers,
	}}}
	if err := rpc.CheckSize(m); err != nil {
		s.failUnlaunchable(e, fmt.Errorf("its program cannot be sent to a node: %w", err), now)
		return
	}
	s.sendTo(e.Node, m)
	s.attackClaims(e, program)
	s.pending.callbacks = append(s.pending.callbacks, func() { failpoint.Point(failpoint.ScheddAfterActivate) })
}

// failUnlaunchable ends an attempt that could not even be put together. The startd never
// heard of it.
func (s *Schedd) failUnlaunchable(e dispatch.ActivateClaim, err error, now time.Time) {
	s.recordEnded(e.Attempt, &wire.ExitStatus{Cause: wire.Cause_CAUSE_LAUNCH, Reason: err.Error()}, now)
}
