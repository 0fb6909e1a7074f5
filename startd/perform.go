package startd

import (
	"crypto/rand"
	"encoding/hex"

	"github.com/roost-batch/roost/internal/attack"
	"github.com/roost-batch/roost/internal/fault"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
)

// perform does one effect, without waiting for anything.
func (l *loop) perform(effect slot.Effect) {
	if l.lent != nil {
		l.lent.Performed(effect)
	}
	switch e := effect.(type) {
	case slot.Make:
		l.make(e.Claim)
	case slot.Answer:
		l.answer(e.Session, e.Claim)
	case slot.Refuse:
		l.refused("claim refused", "grant", e.Grant.ID, "epoch", e.Grant.Epoch, "reason", e.Reason)
		l.say(e.Session, &wire.FromStartd{Of: &wire.FromStartd_Claim{Claim: &wire.ClaimReply{
			Grant: e.Grant.ID, Epoch: e.Grant.Epoch, Reason: e.Reason, AdSequence: l.sequence, ScratchDomain: l.m.node.FileSystemDomain,
		}}})
	case slot.Place:
		l.order(e.Claim, settle{*l.saved(e.Claim), l.cores(e.Claim)})
	case slot.TellReady:
		l.tell(e.Claim.Schedd, &wire.FromStartd{Of: &wire.FromStartd_Ready{Ready: &wire.ClaimReady{
			Claim: uint64(e.Claim.ID), Placed: l.placed(e.Claim),
		}}})
	case slot.Withdraw:
		l.withdraw(e)
	case slot.Start:
		a := l.programs[e.Claim.ID]
		delete(l.programs, e.Claim.ID)
		l.order(e.Claim, start{e.Attempt, a.GetProgram(), a.GetHoldForInput()})
	case slot.Decline:
		l.decline(e)
	case slot.Vacate:
		l.order(e.Claim, vacate{e.Attempt, wire.Cause(e.Cause), e.Fast, e.Reason, l.notice})
	case slot.TellStarted:
		l.tell(e.Claim.Schedd, &wire.FromStartd{Of: &wire.FromStartd_Started{Started: &wire.Started{
			Attempt: reference(e.Attempt), Pid: l.pids[e.Claim.ID],
		}}})
	case slot.TellExited:
		fault.Point(fault.StartdBeforeExitSent)
		if x := l.exited(e.Claim); x != nil {
			x.Waiting = e.Claim.Waits()
			l.tell(e.Claim.Schedd, &wire.FromStartd{Of: &wire.FromStartd_Exited{Exited: x}})
			if attack.Is(attack.RepeatedEnds) {
				l.attackEnd(e.Claim.Schedd, x)
			}
		}
	case slot.TellLost:
		l.tell(e.Claim.Schedd, &wire.FromStartd{Of: &wire.FromStartd_Lost{Lost: &wire.ClaimLost{Claim: uint64(e.Claim.ID), Reason: e.Reason}}})
	case slot.Squeeze:
		l.order(e.Claim, squeeze{e.Claim.Squeezed})
	case slot.Renew:
		l.order(e.Claim, renew{e.Claim.Lease})
	case slot.Forget:
		delete(l.exits, e.Claim.ID)
		l.order(e.Claim, forget{e.Attempt})
	case slot.Dismiss:
		delete(l.exits, e.Claim.ID)
		delete(l.pids, e.Claim.ID)
		delete(l.programs, e.Claim.ID)
		l.order(e.Claim, dismiss{})
	case slot.Hang:
		if s := l.sessions[e.Session]; s != nil {
			delete(l.sessions, e.Session)
			s.hang()
		}
	}
}

// order gives the hand of a claim something to do.
func (l *loop) order(c *slot.Claim, what any) {
	if h := l.hands[c.ID]; h != nil {
		h.box.put(what)
	}
}

func (l *loop) make(c *slot.Claim) {
	cookie := make([]byte, 16)
	rand.Read(cookie)
	as := l.rights[c.ID]
	delete(l.rights, c.ID)
	h := l.m.newHand(claimFile{
		ID: uint64(c.ID), Epoch: c.Grant.Epoch, Grant: c.Grant.ID, Schedd: c.Schedd, Owner: c.Owner, About: c.About, UID: c.UID, GID: c.GID, Rights: &as,
		Class: c.Class, MayWait: c.MayWait, Resources: c.Resources, Placed: l.saved(c), Cores: l.cores(c), Lease: c.Period, BootID: l.m.boot,
		Cookie: hex.EncodeToString(cookie),
	})
	l.hands[c.ID] = h
	if l.shown[c.ID] == 0 {
		l.shown[c.ID] = l.sequence // the ad was made after the claim was carved
	}
	l.m.log.Info("claim made", "claim", c.ID, "grant", c.Grant.ID, "epoch", c.Grant.Epoch, "schedd", c.Schedd, "owner", c.Owner, "runs as", as.UID)
	go h.run()
	h.box.put(makeClaim{c.Period})
}

func (l *loop) answer(session uint64, c *slot.Claim) {
	l.say(session, &wire.FromStartd{Of: &wire.FromStartd_Claim{Claim: &wire.ClaimReply{
		Grant: c.Grant.ID, Epoch: c.Grant.Epoch, Claim: uint64(c.ID), AdSequence: l.shown[c.ID], ScratchDomain: l.m.node.FileSystemDomain,
		Waiting: c.Waits(), PredictedWait: int64(c.Predicted), Placed: l.placed(c),
	}}})
}

// decline tells a schedd that an attempt does not run, which is no fault of its own.
func (l *loop) decline(e slot.Decline) { l.declineFor(e, wire.Cause_CAUSE_MACHINE) }

func (l *loop) declineFor(e slot.Decline, cause wire.Cause) {
	if c, ok := l.core.Claim(e.Claim); !ok || c.Schedd == e.Schedd && attemptID(e.Schedd, l.programs[e.Claim].GetAttempt()) == e.Attempt {
		delete(l.programs, e.Claim)
	}
	l.refused("attempt declined", "attempt", e.Attempt, "reason", e.Reason)
	if e.NoClaim {
		l.tell(e.Schedd, &wire.FromStartd{Of: &wire.FromStartd_Lost{Lost: &wire.ClaimLost{Claim: uint64(e.Claim), Reason: e.Reason}}})
		return
	}
	l.tell(e.Schedd, &wire.FromStartd{Of: &wire.FromStartd_Exited{Exited: &wire.Exited{
		Attempt: reference(e.Attempt), Status: &wire.ExitStatus{Cause: cause, Reason: e.Reason},
	}}})
}

// exited is the news of the end of the claim's attempt. One that ended without its hand's doing is the machine's fault.
func (l *loop) exited(c *slot.Claim) *wire.Exited {
	if x := l.exits[c.ID]; x != nil && attemptID(c.Schedd, x.GetAttempt()) == c.Attempt {
		return x
	}
	x := &wire.Exited{
		Attempt: reference(c.Attempt), Status: &wire.ExitStatus{Cause: wire.Cause_CAUSE_MACHINE, Reason: "its claim has ended under it"},
	}
	l.exits[c.ID] = x
	return x
}
