package startd

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/files"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
)

// matchSteps bounds what a job's requirements, or the machine's own, may take for one claim, in nodes: nobody's requirements hold up a node.
const matchSteps = 100_000

// maxSignal is the highest number that a signal has on Linux.
const maxSignal = 64

// hear takes in one message of a schedd's present session.
func (l *loop) hear(s *session, message *wire.ToStartd, who verdict) {
	switch m := message.GetOf().(type) {
	case *wire.ToStartd_Claim:
		l.claim(s, m.Claim, who)
	case *wire.ToStartd_Activate:
		l.activate(s, m.Activate)
	case *wire.ToStartd_Launch:
		if c, ok := l.core.Find(attemptID(s.schedd, m.Launch.GetAttempt())); ok && c.Schedd == s.schedd {
			l.order(c, launch{c.Attempt})
		}
	case *wire.ToStartd_Vacate:
		v := m.Vacate
		l.core.VacateAsked(s.id, s.schedd, attemptID(s.schedd, v.GetAttempt()), slot.AskedCause(int32(v.GetCause())), v.GetFast(), v.GetReason())
	case *wire.ToStartd_Checkpoint:
		l.forRunning(s, m.Checkpoint.GetAttempt(), func(id roost.AttemptID) any { return save{id, asked} })
	case *wire.ToStartd_Freeze:
		l.forRunning(s, m.Freeze.GetAttempt(), func(id roost.AttemptID) any { return freeze{id, m.Freeze.GetFrozen()} })
	case *wire.ToStartd_Signal:
		if n := m.Signal.GetSignal(); n <= maxSignal {
			l.forRunning(s, m.Signal.GetAttempt(), func(id roost.AttemptID) any { return kick{id, unix.Signal(n)} })
		}
	case *wire.ToStartd_Limit:
		walltime, cpu := max(time.Duration(m.Limit.GetWalltimeNs()), 0), max(time.Duration(m.Limit.GetCpuNs()), 0)
		l.forRunning(s, m.Limit.GetAttempt(), func(id roost.AttemptID) any {
			l.core.Limited(id, walltime)
			return limit{id, walltime, cpu}
		})
	case *wire.ToStartd_Message:
		if m := m.Message; len(m.GetLine()) <= maxLine {
			l.forRunning(s, m.GetAttempt(), func(id roost.AttemptID) any { return inscribe{id, string(m.GetLine()) + "\n", m.GetOut(), m.GetErr()} })
		}
	case *wire.ToStartd_Kept:
		l.forRunning(s, m.Kept.GetAttempt(), func(id roost.AttemptID) any { return kept{id, m.Kept.GetSequence()} })
	case *wire.ToStartd_Acknowledge:
		for _, a := range m.Acknowledge.GetAttempts() {
			l.core.Acknowledged(s.id, s.schedd, attemptID(s.schedd, a))
		}
	case *wire.ToStartd_Release:
		if c, ok := l.core.Claim(slot.ClaimID(m.Release.GetClaim())); ok && c.Schedd != s.schedd {
			l.refused("refused to give up a claim", "claim", c.ID, "of", c.Schedd, "asked", s.schedd)
		}
		l.core.Released(s.id, s.schedd, slot.ClaimID(m.Release.GetClaim()))
	case *wire.ToStartd_Renew:
		r := slot.Renewal{Heard: m.Renew.GetHeard(), Since: time.Duration(m.Renew.GetSinceNs()), Lease: time.Duration(m.Renew.GetLeaseS()) * time.Second}
		if word, ok := l.core.Renewed(boottime(), s.id, s.schedd, r); ok {
			l.say(s.id, &wire.FromStartd{Of: &wire.FromStartd_Renewed{Renewed: &wire.LeasesRenewed{Word: word}}})
		}
	}
}

// forRunning gives the hand of an attempt an order, if it is here.
func (l *loop) forRunning(s *session, ref *wire.AttemptRef, order func(roost.AttemptID) any) {
	if c, ok := l.core.Find(attemptID(s.schedd, ref)); ok && c.Schedd == s.schedd {
		l.order(c, order(c.Attempt))
	}
}

// claim finds out what the books cannot know of a wish, and has it decided.
func (l *loop) claim(s *session, r *wire.ClaimRequest, who verdict) {
	grant := &wire.Grant{
		Id: r.GetGrant(), Node: l.m.own.Name, Resources: r.GetResources(), Epoch: r.GetEpoch(), Capability: r.GetCapability(), Owner: r.GetOwner(),
		Group: r.GetGroup(), Band: r.GetBand(), Victims: r.GetVictims(), Why: r.GetWhy(), ClaimBy: r.GetClaimBy(),
	}
	wish := slot.ClaimRequest{
		Session: s.id, Schedd: s.schedd, Grant: slot.GrantID{Epoch: r.GetEpoch(), ID: r.GetGrant()}, Owner: r.GetOwner(),
		UID: r.GetUid(), GID: r.GetGid(), Resources: r.GetResources().Vector(), MayWait: r.GetMayWait(), By: time.Duration(r.GetClaimBy()), Lease: time.Duration(r.GetLeaseS()) * time.Second,
		Capable: wire.CheckCapability(l.m.grantKey, grant, s.schedd), Account: who.err, Env: &classad.Env{Now: time.Now(), Steps: matchSteps},
	}
	var err error
	if wish.Class, err = gpu.ParseClass(r.GetAppClass()); err != nil {
		wish.Account = err
	}
	if text := r.GetAd(); text != "" {
		ad, err := classad.Parse(text)
		if err != nil {
			wish.Account = fmt.Errorf("the request's ad: %w", err)
		}
		wish.Ad = ad
	}
	if wish.About, err = about(r, wish.Ad); err != nil {
		wish.Account = err
	}
	if wish.Account == nil {
		wish.Account = room(l.m.claimsDir())
	}
	if l.lent != nil && wish.Account == nil {
		wish.Account = l.lent.Accepts(wish.Ad)
	}
	var as files.Credential
	if wish.Account == nil {
		as, wish.Account = l.rightsOf(s.schedd, r.GetUid(), who.rights)
	}
	wish.Evicted = evicted(r)
	if c, err := l.core.Decide(boottime(), wish); err == nil { // the effects answer
		l.rights[c.ID] = as
	}
}

// activate starts an attempt, as the user for whom the claim was made.
func (l *loop) activate(s *session, a *wire.Activate) {
	claim, id := slot.ClaimID(a.GetClaim()), attemptID(s.schedd, a.GetAttempt())
	c, ok := l.core.Claim(claim)
	own := ok && c.Schedd == s.schedd
	if own && a.GetProgram().GetUid() != c.UID {
		err := fmt.Errorf("%w: the claim is of uid %d, and the program of uid %d", roost.PermissionDenied, c.UID, a.GetProgram().GetUid())
		l.declineFor(slot.Decline{Schedd: s.schedd, Claim: claim, Attempt: id, Reason: err.Error()}, wire.Cause_CAUSE_LAUNCH)
		return
	}
	before := l.programs[claim] // of an attempt that waits there
	if own {
		l.programs[claim] = a
	}
	if err := l.core.Activated(boottime(), s.id, s.schedd, claim, id, terms(a.GetProgram())); err != nil {
		if l.programs[claim] = before; before == nil {
			delete(l.programs, claim)
		}
		l.refused("activation refused", "attempt", id, "schedd", s.schedd, "err", err)
	}
}

// maxRefusals is how many refusals are logged a second: a schedd that asks for nothing else cannot fill the disk with them.
const maxRefusals = 20

// refused logs what a schedd was refused, each kind by itself.
func (l *loop) refused(what string, more ...any) {
	if now := boottime(); now-l.refusedFrom >= time.Second {
		for kind, times := range l.refusals {
			if times > maxRefusals {
				l.m.log.Warn("more was refused than is told", "what", kind, "times", times-maxRefusals)
			}
		}
		l.refusedFrom, l.refusals = now, map[string]int{}
	}
	if l.refusals[what]++; l.refusals[what] <= maxRefusals {
		l.m.log.Warn(what, more...)
	}
}
