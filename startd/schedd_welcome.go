package startd

import (
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost/internal/attack"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/claim"
	"github.com/roost-batch/roost/startd/slot"
)

// sendWelcome sends a schedd its claims, and then the ends of attempts that it has not
// acknowledged. Both are as long as users make them, so neither may become one message.
// The claims come in parts if the schedd accepts that. The ends of attempts come one by
// one when they are too long to come along.
func (l *machineLoop) sendWelcome(s *scheddSession, parts bool) {
	room := rpc.PartSize
	var states []*wire.ClaimState
	var later []*wire.FromStartd
	for _, c := range l.table.ClaimsOf(s.schedd) {
		state := l.claimState(c)
		if c.State == slot.Exited {
			e := l.exitReport(c)
			if size := proto.Size(e); size <= room {
				room -= size
				state.Exited = e
			} else {
				later = append(later, &wire.FromStartd{Of: &wire.FromStartd_Exited{Exited: e}})
			}
		}
		states = append(states, state)
	}
	name := l.host.config.Name
	if attack.Is(attack.ForeignName) {
		name = attackedNode
	}
	for first := true; first || len(states) > 0; first = false {
		n := len(states)
		if parts {
			n = rpc.PartLen(states)
		}
		s.queue.Put(&wire.FromStartd{Of: &wire.FromStartd_Welcome{Welcome: &wire.SessionWelcome{
			Node: name, BootId: l.host.boot, FileSystemDomain: l.host.node.FileSystemDomain, Claims: states[:n],
			More: n < len(states), LeftNs: timeLeft(l.host.config.Pilot),
		}}})
		states = states[n:]
	}
	for _, message := range later {
		s.queue.Put(message)
	}
}

// claimState is how a claim is, but for the end of its attempt.
func (l *machineLoop) claimState(c *slot.Claim) *wire.ClaimState {
	state := &wire.ClaimState{
		Claim: uint64(c.ID), Resources: wire.FromResources(c.Resources), Owner: c.Owner, Grant: c.Grant.ID,
		Epoch:   c.Grant.Epoch,
		Running: c.Running, Waiting: c.IsWaiting(), Placed: l.wirePlacement(c),
	}
	if !c.Attempt.Task.Job.IsZero() {
		state.Attempt = wire.FromAttempt(c.Attempt)
	}
	if h := l.runners[c.ID]; h != nil && h.Attempt() != nil {
		state.Secrets = h.Attempt().SecretVersions()
	}
	if l.ownerState != nil && c.Running {
		state.Suspended = claim.PrintableReason(l.ownerState.SuspendReason(c.ID))
	}
	return state
}

// sendFailure gives back a message that could not be sent.
type sendFailure struct {
	session *scheddSession
	message *wire.FromStartd
	err     error
}

// onSendFailure ends what a message was about that its schedd cannot be told. The session
// goes on, and everything else with it.
func (l *machineLoop) onSendFailure(n sendFailure) {
	l.logRefusal("a message cannot be sent", "schedd", n.session.schedd, "err", n.err)
	var about *wire.AttemptRef
	switch m := n.message.GetOf().(type) {
	case *wire.FromStartd_Exited:
		c, ok := l.table.Find(m.Exited.GetAttempt().AttemptID(n.session.schedd))
		short := &wire.Exited{Attempt: m.Exited.GetAttempt(), Waiting: m.Exited.GetWaiting(), Status: &wire.ExitStatus{
			Cause:  wire.Cause_CAUSE_LAUNCH,
			Reason: claim.PrintableReason("it has ended, and its submit node cannot be told how: " + n.err.Error()),
		}}
		if ok && l.exits[c.ID] == m.Exited {
			l.exits[c.ID] = short
		}
		l.sendOn(n.session.id, &wire.FromStartd{Of: &wire.FromStartd_Exited{Exited: short}})
		return
	case *wire.FromStartd_Input:
		about = m.Input.GetAttempt()
	case *wire.FromStartd_Started:
		about = m.Started.GetAttempt()
	case *wire.FromStartd_Suspended:
		about = m.Suspended.GetAttempt()
	default: // a report, which the next one replaces, or an answer that is asked for again
		return
	}
	if c, ok := l.table.Find(about.AttemptID(n.session.schedd)); ok {
		l.sendCommand(c, claim.VacateCmd{ID: c.Attempt, Cause: wire.Cause_CAUSE_LAUNCH, Fast: true,
			Reason: claim.PrintableReason("its submit node cannot be told of it: " + n.err.Error())})
	}
}

// timeLeft returns how long a pilot still lives, in nanoseconds; 0: nobody knows.
func timeLeft(p *config.PilotSettings) int64 {
	if p == nil || p.Until.IsZero() {
		return 0
	}
	return max(int64(time.Until(p.Until)), 1)
}
