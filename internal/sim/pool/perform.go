package pool

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/fault"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
)

// perform does one effect of the books, as startd's loop.perform.
func (m *machineNode) perform(effect slot.Effect) {
	if m.lender != nil {
		m.lender.Performed(effect)
	}
	switch e := effect.(type) {
	case slot.Make:
		m.make(e.Claim)
	case slot.Answer:
		m.to(e.Session, &wire.FromStartd{Of: &wire.FromStartd_Claim{Claim: &wire.ClaimReply{
			Grant: e.Claim.Grant.ID, Epoch: e.Claim.Grant.Epoch, Claim: uint64(e.Claim.ID), AdSequence: m.shown[e.Claim.ID], ScratchDomain: domain,
			Waiting: e.Claim.Waits(), PredictedWait: int64(e.Claim.Predicted),
		}}})
	case slot.Refuse:
		m.to(e.Session, &wire.FromStartd{Of: &wire.FromStartd_Claim{Claim: &wire.ClaimReply{
			Grant: e.Grant.ID, Epoch: e.Grant.Epoch, Reason: e.Reason, AdSequence: m.ad.Sequence, ScratchDomain: domain,
		}}})
	case slot.Place:
		if h := m.hands[e.Claim.ID]; h != nil {
			h.settle(e.Claim)
		}
	case slot.TellReady:
		m.tell(e.Claim.Schedd, &wire.FromStartd{Of: &wire.FromStartd_Ready{Ready: &wire.ClaimReady{Claim: uint64(e.Claim.ID)}}})
	case slot.Withdraw:
		delete(m.programs, e.Claim.ID)
		m.exits[e.Claim.ID] = exit(e.Attempt, wire.Cause(e.Cause), e.Reason)
	case slot.Start:
		a := m.programs[e.Claim.ID]
		delete(m.programs, e.Claim.ID)
		if h := m.hands[e.Claim.ID]; h != nil {
			h.start(e.Attempt, a.GetProgram())
		}
	case slot.Decline:
		m.decline(e)
	case slot.Vacate:
		if h := m.hands[e.Claim.ID]; h != nil {
			h.vacate(e)
		}
	case slot.TellStarted:
		m.tell(e.Claim.Schedd, &wire.FromStartd{Of: &wire.FromStartd_Started{Started: &wire.Started{Attempt: reference(e.Attempt), Pid: 1}}})
	case slot.TellExited:
		if m.p.point(m.node, fault.StartdBeforeExitSent) {
			return
		}
		x := m.exited(e.Claim)
		x.Waiting = e.Claim.Waits()
		m.tell(e.Claim.Schedd, &wire.FromStartd{Of: &wire.FromStartd_Exited{Exited: x}})
	case slot.TellLost:
		m.tell(e.Claim.Schedd, &wire.FromStartd{Of: &wire.FromStartd_Lost{Lost: &wire.ClaimLost{Claim: uint64(e.Claim.ID), Reason: e.Reason}}})
	case slot.Renew:
		m.renew(e.Claim)
	case slot.Forget:
		delete(m.exits, e.Claim.ID)
		if h := m.hands[e.Claim.ID]; h != nil {
			h.forget(e.Attempt)
		}
	case slot.Dismiss:
		delete(m.exits, e.Claim.ID)
		delete(m.shown, e.Claim.ID)
		delete(m.programs, e.Claim.ID)
		if h := m.hands[e.Claim.ID]; h != nil {
			h.dismiss()
		}
	case slot.Hang:
		if on := m.sessions[e.Session]; on != nil {
			delete(m.sessions, e.Session)
			m.p.hang(on, 1)
		}
	}
}

// renew moves the deadline that a claim's starter enforces. The observer is told the longest that was asked for, whatever the books make of it.
func (m *machineNode) renew(c *slot.Claim) {
	h := m.hands[c.ID]
	if h == nil {
		return
	}
	h.starter.deadline = c.Lease
	m.p.see(audit.Seen{What: audit.Renewed, Node: m.name, Claim: uint64(c.ID), Until: m.p.k.Now() + c.Period})
}

func (m *machineNode) decline(e slot.Decline) {
	delete(m.programs, e.Claim)
	if e.NoClaim {
		m.tell(e.Schedd, &wire.FromStartd{Of: &wire.FromStartd_Lost{Lost: &wire.ClaimLost{Claim: uint64(e.Claim), Reason: e.Reason}}})
		return
	}
	m.tell(e.Schedd, &wire.FromStartd{Of: &wire.FromStartd_Exited{Exited: exit(e.Attempt, wire.Cause_CAUSE_MACHINE, e.Reason)}})
}

// exited is the news of the end of the claim's attempt. One that ended without its hand's doing is the machine's fault.
func (m *machineNode) exited(c *slot.Claim) *wire.Exited {
	if x := m.exits[c.ID]; x != nil && attemptID(c.Schedd, x.GetAttempt()) == c.Attempt {
		return x
	}
	x := exit(c.Attempt, wire.Cause_CAUSE_MACHINE, "its claim has ended under it")
	m.exits[c.ID] = x
	return x
}

// to puts a message on a session, and tell on the present one of a schedd, if there is one.
func (m *machineNode) to(session uint64, message *wire.FromStartd) {
	if on := m.sessions[session]; on != nil {
		m.p.send(on, 1, message)
	}
}

func (m *machineNode) tell(schedd string, message *wire.FromStartd) {
	if id, ok := m.core.Session(schedd); ok {
		m.to(id, message)
	}
}

// make begins to write a claim down.
func (m *machineNode) make(c *slot.Claim) {
	h := &hand{m: m, id: c.ID, host: m.host, claim: *c}
	h.starter = &starter{h: h, deadline: c.Lease}
	h.settle(c)
	m.hands[c.ID] = h
	if m.shown[c.ID] == 0 {
		m.shown[c.ID] = m.ad.Sequence // the ad was made after the claim was carved
	}
	takes, ok := m.flush()
	m.plan(m.p.k.Now()+takes/10, evNews, uint64(c.ID), &made{c.ID, ok}) // it is not forced to disk
}

// What hands and starters tell the startd.
type (
	made struct {
		claim slot.ClaimID
		ok    bool
	}
	began struct {
		claim   slot.ClaimID
		starter *starter
		attempt roost.AttemptID
	}
	ended struct {
		claim slot.ClaimID
		exit  *wire.Exited
	}
)

// news takes that in.
func (m *machineNode) news(x any) {
	switch x := x.(type) {
	case *made:
		h := m.hands[x.claim]
		if h == nil {
			return
		}
		if !x.ok || m.full > m.p.k.Now() {
			m.core.Unmade(m.boot(), x.claim, "the claim could not be written down: no space left on device")
			break
		}
		h.written = true
		if m.p.point(m.node, fault.StartdAfterClaim) {
			return
		}
		m.core.Made(x.claim)
		life := m.life
		if m.act(); m.life != life || m.p.point(m.node, fault.StartdBeforeStarter) {
			return
		}
		if h = m.hands[x.claim]; h != nil {
			h.spawn()
		}
		if m.p.point(m.node, fault.StartdAfterStarter) {
			return
		}
	case *began:
		if s := x.starter; s.attempt == x.attempt && s.phase == running {
			m.core.Started(m.boot(), x.claim, s.attempt)
		}
	case called:
		m.found()
	case missing:
		if x.awaited == m.awaited {
			m.lost()
		}
	case *signs:
		m.signed(x)
	case *ended:
		if c, ok := m.core.Claim(x.claim); ok {
			m.exits[x.claim] = x.exit
			m.core.Ended(m.boot(), x.claim, attemptID(c.Schedd, x.exit.GetAttempt()))
		}
	}
	m.act()
}

// notice is how long a task has that is told to go, as its job asks.
func notice(p *wire.Program) time.Duration { return max(time.Duration(p.GetNoticeNs()), 0) }

func (m *machineNode) points() []string {
	return []string{fault.StartdAfterClaim, fault.StartdBeforeStarter, fault.StartdAfterStarter, fault.StartdBeforeExitSent}
}
