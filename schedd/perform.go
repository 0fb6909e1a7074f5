package schedd

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/attack"
	"github.com/roost-batch/roost/internal/fault"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/dispatch"
	"github.com/roost-batch/roost/schedd/queue"
)

// perform carries the dispatcher's effects out, in order.
func (s *Schedd) perform(effects []dispatch.Effect, now time.Time) {
	for _, e := range effects {
		switch e := e.(type) {
		case dispatch.Connect:
			s.reach(e.Node, e.Address)
		case dispatch.Disconnect:
			s.leave(e.Node)
		case dispatch.AskClaim:
			fault.Point(fault.ScheddBeforeClaim)
			s.askClaim(e.Claim)
		case dispatch.Activate:
			s.activate(e, now)
		case dispatch.Vacate:
			cause := wire.Cause_CAUSE_REMOVED
			if e.Order.Keep {
				cause = wire.Cause_CAUSE_VACATED
			}
			s.say(e.Node, &wire.ToStartd{Of: &wire.ToStartd_Vacate{Vacate: &wire.Vacate{
				Attempt: ref(e.Attempt), Cause: cause, Fast: e.Order.Fast, Reason: e.Order.Reason,
			}}})
		case dispatch.Acknowledge:
			s.stopTransfer(e.Attempt)
			s.sayLazily(e.Node, &wire.ToStartd{Of: &wire.ToStartd_Acknowledge{Acknowledge: &wire.Acknowledge{
				Attempts: []*wire.AttemptRef{ref(e.Attempt)},
			}}})
		case dispatch.Release:
			s.say(e.Node, &wire.ToStartd{Of: &wire.ToStartd_Release{Release: &wire.ReleaseClaim{Claim: e.Claim}}})
		case dispatch.Renew:
			s.renewLeases(e)
		case dispatch.Answer:
			s.answer(e)
		}
	}
}

// logWait is how long a write of the log may take before leases are renewed without it.
const logWait = time.Second

// renewLeases tells a node that its leases go on. That rests on nothing that is to be written: as long as the log cannot be, for want of room or because its disk
// stands still, it goes out before all that waits, or every task would end with its lease.
func (s *Schedd) renewLeases(e dispatch.Renew) {
	m := &wire.ToStartd{Of: &wire.ToStartd_Renew{Renew: &wire.RenewLeases{Heard: e.Heard, SinceNs: int64(e.Since)}}}
	began, p := dispatch.Instant(s.writing.Load()), s.peers[e.Node]
	if began > 0 && s.at.boot-began > logWait && p != nil && p.session != nil {
		p.session.out.put(m)
		return
	}
	s.say(e.Node, m)
}

// ref is the wire's form of an attempt: the host of the id is the schedd's own.
func ref(a roost.AttemptID) *wire.AttemptRef {
	return &wire.AttemptRef{Job: a.Task.Job.Seq, Index: uint32(a.Task.Index), Attempt: uint32(a.Attempt)}
}

// attempt is the id that a reference stands for.
func (s *Schedd) attempt(r *wire.AttemptRef) roost.AttemptID {
	if r == nil {
		return roost.AttemptID{}
	}
	job := roost.JobID{Seq: r.GetJob(), Host: s.node.Name}
	return roost.AttemptID{Task: job.Task(int(r.GetIndex())), Attempt: roost.Attempt(r.GetAttempt())}
}

// reach begins the upkeep of a session with a node; a node that has moved is reached anew.
func (s *Schedd) reach(node, address string) {
	s.leave(node)
	s.peers[node] = s.outside.connect(node, address)
}

func (s *Schedd) leave(node string) {
	if p := s.peers[node]; p != nil {
		p.stop()
		delete(s.peers, node)
	}
}

// askClaim asks for a claim, unless what it is for has gone since the grant was taken: it was removed, or altered, and asks for something else now.
func (s *Schedd) askClaim(c *dispatch.Claim) {
	r, ok := s.queue.Request(queue.RequestID(c.Request))
	if !ok {
		s.dispatch.ClaimAnswered(s.at.boot, c.Node, dispatch.Reply{Grant: c.Grant.GrantID, Reason: "nothing waits for it any more"})
		return
	}
	m := s.claimRequest(c, r)
	s.say(c.Node, &wire.ToStartd{Of: &wire.ToStartd_Claim{Claim: m}})
	s.attackGrant(c.Node, m)
}

// claimRequest is what the startd is asked: the grant as it was made, and the request's own words on what it needs.
func (s *Schedd) claimRequest(c *dispatch.Claim, r *queue.Request) *wire.ClaimRequest {
	m := &wire.ClaimRequest{
		Grant: c.Grant.ID, Epoch: c.Grant.Epoch, Capability: c.Grant.Capability, Owner: r.Owner, Ad: r.Ad,
		Resources: wire.FromResources(c.Resources), LeaseS: uint32(c.Lease / time.Second), Uid: r.UID, Gid: r.GID,
		AppClass: r.Class, MayWait: c.MayWait && r.Class == roost.AppBatch, Band: r.Band.String(), Group: r.Group, Victims: c.Grant.Victims, Why: c.Grant.Why,
		ClaimBy: int64(c.Grant.ClaimBy), GroupChosen: s.users.chose(r.UID, r.GID),
	}
	if attack.Is(attack.OtherGID) {
		m.Gid = 42
	}
	if attack.Is(attack.ImpossibleUID) {
		m.Uid = 1<<32 - 1
	}
	if job, ok := s.queue.NextJob(r.ID); ok && len(m.Victims) > 0 {
		m.Job = job.String()
	}
	return m
}

// activate sends an attempt to its claim. Its assignment is in the batch that this message rides on.
func (s *Schedd) activate(e dispatch.Activate, now time.Time) {
	program, plan, err := s.program(e.Attempt, e.Node)
	if err != nil {
		s.unlaunchable(e, err, now)
		return
	}
	m := &wire.ToStartd{Of: &wire.ToStartd_Activate{Activate: &wire.Activate{
		Claim: e.Claim, Attempt: ref(e.Attempt), Program: program, HoldForInput: plan.awaited(),
	}}}
	if err := rpc.Fits(m); err != nil {
		s.unlaunchable(e, fmt.Errorf("its program cannot be sent to a node: %w", err), now)
		return
	}
	s.say(e.Node, m)
	s.attackClaims(e, program)
	s.pending.after = append(s.pending.after, func() { fault.Point(fault.ScheddAfterActivate) })
}
