package pool

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
)

// acceptStream opens a session of a schedd, as startd's openSession does.
func (m *machineNode) acceptStream(on *daemonStream, hello any) {
	h := hello.(*wire.SessionHello)
	id := m.lastSession + 1
	if h.GetNode() != "" && h.GetNode() != m.name {
		m.pool.network().closeStream(on, 1)
		return
	}
	if err := m.core.Connected(m.bootTime(), id, h.GetSchedd(), h.GetStarted(), h.GetIncarnation()); err != nil {
		m.pool.network().closeStream(on, 1)
		return
	}
	m.lastSession = id
	m.sessions[id], on.endState[1] = on, id
	welcome := &wire.FromStartd_Welcome{Welcome: m.sessionState(h.GetSchedd())}
	m.pool.network().sendOn(on, 1, &wire.FromStartd{Of: welcome})
	m.resendHealth(h.GetSchedd())
	m.runEffects()
}

// schedd returns the name of the schedd that has opened a session.
func (s *daemonStream) schedd() string { return s.hello.(*wire.SessionHello).GetSchedd() }

// sessionState returns the machine's state of a schedd's claims.
func (m *machineNode) sessionState(schedd string) *wire.SessionWelcome {
	w := &wire.SessionWelcome{Node: m.name, BootId: fmt.Sprint(m.hostLife), FileSystemDomain: fileSystemDomain}
	for _, c := range m.core.ClaimsOf(schedd) {
		state := &wire.ClaimState{
			Claim: uint64(c.ID), Resources: wire.FromResources(c.Resources), Owner: c.Owner, Grant: c.Grant.ID,
			Epoch: c.Grant.Epoch, Running: c.Running, Waiting: c.IsWaiting(),
		}
		if !c.Attempt.Task.Job.IsZero() {
			state.Attempt = reference(c.Attempt)
		}
		if m.enforcer != nil && c.Running {
			state.Suspended = m.enforcer.SuspendReason(c.ID)
		}
		if c.State == slot.Exited {
			state.Exited = m.exitReport(c)
		}
		w.Claims = append(w.Claims, state)
	}
	return w
}

func (m *machineNode) streamBroken(on *daemonStream) {
	if l, ok := on.endState[0].(*adLink); ok && on.kind == machineStream {
		if l.stream == on {
			l.stream, l.sent, l.waiting = nil, 0, false
			m.setTimer(&l.retryTimer, m.pool.loop.Now()+l.retry.nextDelay(m.pool.loop.Now()-l.began))
		}
		return
	}
	id, ok := on.endState[1].(uint64)
	if !ok || m.sessions[id] != on {
		return
	}
	delete(m.sessions, id)
	m.core.Disconnected(m.bootTime(), id, on.schedd())
	m.runEffects()
}

// handleMessage handles a message, as startd's loop does.
func (m *machineNode) handleMessage(on *daemonStream, x any) {
	switch x := x.(type) {
	case *adAnswer:
		l := on.endState[0].(*adLink)
		if l.stream != on {
			return
		}
		if l.waiting = false; x.resend {
			l.sent = 0
		}
		m.advertise(l)
		return
	case *wire.ToStartd:
		id, _ := on.endState[1].(uint64)
		if m.sessions[id] != on {
			return
		}
		m.handleSchedd(id, on.schedd(), x)
	}
	m.runEffects()
}

func (m *machineNode) handleSchedd(session uint64, schedd string, message *wire.ToStartd) {
	switch x := message.GetOf().(type) {
	case *wire.ToStartd_Claim:
		m.requestClaim(session, schedd, x.Claim)
	case *wire.ToStartd_Activate:
		a := x.Activate
		id := slot.ClaimID(a.GetClaim())
		m.programs[id] = a
		p := a.GetProgram()
		terms := slot.AttemptInfo{Walltime: time.Duration(p.GetWalltimeNs()),
			Expected: time.Duration(p.GetExpectedNs()), NotRestartable: p.GetOnce(),
			Priority: slot.BoundPriority(p.GetPriority())}
		if m.core.Activate(m.bootTime(), session, schedd, id, attemptID(schedd, a.GetAttempt()), terms) != nil {
			delete(m.programs, id)
		}
	case *wire.ToStartd_Vacate:
		v := x.Vacate
		m.core.RequestVacate(session, schedd, attemptID(schedd, v.GetAttempt()),
			slot.CauseFromWire(int32(v.GetCause())), v.GetFast(), v.GetReason())
	case *wire.ToStartd_Resize:
		requestResize(m, schedd, x.Resize)
	case *wire.ToStartd_Limit:
		a := attemptID(schedd, x.Limit.GetAttempt())
		m.core.SetWalltime(a, max(time.Duration(x.Limit.GetWalltimeNs()), 0))
	case *wire.ToStartd_Freeze:
		a := attemptID(schedd, x.Freeze.GetAttempt())
		if c, ok := m.core.Find(a); ok && c.Schedd == schedd {
			m.claimRunners[c.ID].starter.freezeForUser(a, x.Freeze.GetFrozen())
		}
	case *wire.ToStartd_Acknowledge:
		for _, a := range x.Acknowledge.GetAttempts() {
			m.core.Acknowledged(session, schedd, attemptID(schedd, a))
		}
	case *wire.ToStartd_Release:
		m.core.Release(session, schedd, slot.ClaimID(x.Release.GetClaim()))
	case *wire.ToStartd_Renew:
		r := slot.LeaseRenewal{LastHeard: x.Renew.GetHeard(), Since: time.Duration(x.Renew.GetSinceNs()),
			Lease: time.Duration(x.Renew.GetLeaseS()) * time.Second}
		if word, ok := m.core.RenewClaims(m.bootTime(), session, schedd, r); ok {
			m.sendToSchedd(schedd,
				&wire.FromStartd{Of: &wire.FromStartd_Renewed{Renewed: &wire.LeasesRenewed{Word: word}}})
		}
	}
}

// requestClaim decides a schedd's request for a claim.
func (m *machineNode) requestClaim(session uint64, schedd string, r *wire.ClaimRequest) {
	grant := &wire.Grant{
		Id: r.GetGrant(), Node: m.name, Resources: r.GetResources(), Epoch: r.GetEpoch(), Capability: r.GetCapability(),
		Owner: r.GetOwner(), Group: r.GetGroup(),
		Band: r.GetBand(), Victims: r.GetVictims(), Why: r.GetWhy(), ClaimBy: r.GetClaimBy(),
	}
	claimRequest := slot.ClaimRequest{
		Session: session, Schedd: schedd, Grant: roost.GrantID{Epoch: r.GetEpoch(), ID: r.GetGrant()},
		Owner: r.GetOwner(), UID: r.GetUid(), GID: r.GetGid(),
		Resources: r.GetResources().Vector(), CanQueue: r.GetMayWait(), GrantDeadline: time.Duration(r.GetClaimBy()),
		Lease:      time.Duration(r.GetLeaseS()) * time.Second,
		TokenValid: wire.CheckClaimToken(m.key, grant, schedd), Env: &classad.EvalEnv{Now: m.wallTime(),
			Steps: maxPolicySteps}, Info: slot.ClaimInfo{Group: r.GetGroup(), Band: roost.BatchBand},
		Victims: slot.PreemptionReason{Reason: r.GetWhy(), Job: r.GetJob()}, Alloc: slot.ClaimID(r.GetAlloc()),
	}
	for _, id := range r.GetVictims() {
		claimRequest.Victims.Claims = append(claimRequest.Victims.Claims, slot.ClaimID(id))
	}
	var err error
	if claimRequest.Class, err = gpu.ParseClass(r.GetAppClass()); err != nil {
		claimRequest.AccountError = err
	}
	if text := r.GetAd(); text != "" {
		if claimRequest.Ad, err = classad.Parse(text); err != nil {
			claimRequest.AccountError = err
		} else {
			claimRequest.Info.Limits, _ = claimRequest.Ad.Str(roost.AttrLimits)
			claimRequest.Info.Alone, _ = claimRequest.Ad.Bool(roost.AttrExclusive)
			claimRequest.Info.Queue, _ = claimRequest.Ad.Str(roost.AttrQueue)
			claimRequest.Info.Alloc, _ = claimRequest.Ad.Bool(roost.AttrAlloc)
		}
	}
	if band := r.GetBand(); band != "" {
		if claimRequest.Info.Band, err = roost.ParsePriorityBand(band); err != nil {
			claimRequest.AccountError = err
		}
	}
	if m.enforcer != nil && claimRequest.AccountError == nil {
		claimRequest.AccountError = m.enforcer.RejectionReason(claimRequest.Ad)
	}
	_, _ = m.core.DecideClaim(m.bootTime(), claimRequest) // the effects answer
}

// attemptID returns the attempt that a schedd's reference names.
func attemptID(schedd string, r *wire.AttemptRef) roost.AttemptID {
	job := roost.JobID{Seq: r.GetJob(), Host: schedd}
	return roost.AttemptID{Task: job.Task(int(r.GetIndex())), Attempt: roost.AttemptNumber(r.GetAttempt())}
}

func reference(id roost.AttemptID) *wire.AttemptRef {
	return &wire.AttemptRef{Job: id.Task.Job.Seq, Index: uint32(id.Task.Index), Attempt: uint32(id.Attempt)}
}
