package startd

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/tasktrace"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/claim"
	"github.com/roost-batch/roost/startd/slot"
)

// maxMatchSteps bounds the evaluation of a job's and the machine's requirements for one
// claim, in nodes. No requirements can block a startd.
const maxMatchSteps = 100_000

// maxSignal is the highest number that a signal has on Linux.
const maxSignal = 64

// onScheddMessage takes in one message of a schedd's present session.
func (l *machineLoop) onScheddMessage(s *scheddSession, message *wire.ToStartd, who accountDecision) {
	switch m := message.GetOf().(type) {
	case *wire.ToStartd_Claim:
		l.requestClaim(s, m.Claim, who)
	case *wire.ToStartd_Activate:
		l.activateClaim(s, m.Activate)
	case *wire.ToStartd_Launch:
		if c, ok := l.table.Find(m.Launch.GetAttempt().AttemptID(s.schedd)); ok && c.Schedd == s.schedd {
			l.sendCommand(c, claim.InputReadyCmd{ID: c.Attempt})
		}
	case *wire.ToStartd_Vacate:
		v := m.Vacate
		l.table.RequestVacate(s.id, s.schedd, v.GetAttempt().AttemptID(s.schedd),
			slot.CauseFromWire(int32(v.GetCause())), v.GetFast(), v.GetReason())
	case *wire.ToStartd_Checkpoint:
		l.sendToAttempt(s, m.Checkpoint.GetAttempt(), func(id roost.AttemptID) any {
			return claim.CheckpointCmd{ID: id, Reason: claim.ReasonRequested}
		})
	case *wire.ToStartd_Freeze:
		l.sendToAttempt(s, m.Freeze.GetAttempt(), func(id roost.AttemptID) any {
			return claim.FreezeCmd{ID: id, Frozen: m.Freeze.GetFrozen()}
		})
	case *wire.ToStartd_Signal:
		if n := m.Signal.GetSignal(); n <= maxSignal {
			l.sendToAttempt(s, m.Signal.GetAttempt(), func(id roost.AttemptID) any {
				return claim.SignalCmd{ID: id, Signal: unix.Signal(n)}
			})
		}
	case *wire.ToStartd_Limit:
		walltime, cpu := max(time.Duration(m.Limit.GetWalltimeNs()), 0), max(time.Duration(m.Limit.GetCpuNs()), 0)
		l.sendToAttempt(s, m.Limit.GetAttempt(), func(id roost.AttemptID) any {
			l.table.SetWalltime(id, walltime)
			return claim.SetLimitsCmd{ID: id, Walltime: walltime, CPUTime: cpu}
		})
	case *wire.ToStartd_HostFiles:
		l.sendToAttempt(s, m.HostFiles.GetAttempt(), func(id roost.AttemptID) any {
			return claim.HostFilesCmd{ID: id, Nodes: m.HostFiles.GetNodeFile(), GPUs: m.HostFiles.GetGpuFile()}
		})
	case *wire.ToStartd_Resize:
		requestResize(l, s, m.Resize)
	case *wire.ToStartd_FetchContent, *wire.ToStartd_HoldChecks, *wire.ToStartd_NameRight, *wire.ToStartd_Secrets:
		l.onServiceMessage(s, message)
	case *wire.ToStartd_Message:
		if m := m.Message; len(m.GetLine()) <= claim.MaxOutputMessage {
			l.sendToAttempt(s, m.GetAttempt(), func(id roost.AttemptID) any {
				return claim.OutputMessageCmd{ID: id, Line: string(m.GetLine()) + "\n", Stdout: m.GetOut(),
					Stderr: m.GetErr()}
			})
		}
	case *wire.ToStartd_Kept:
		l.sendToAttempt(s, m.Kept.GetAttempt(), func(id roost.AttemptID) any {
			return claim.ImageStoredCmd{ID: id, Sequence: m.Kept.GetSequence()}
		})
	case *wire.ToStartd_Acknowledge:
		for _, a := range m.Acknowledge.GetAttempts() {
			l.table.Acknowledged(s.id, s.schedd, a.AttemptID(s.schedd))
		}
	case *wire.ToStartd_Release:
		if c, ok := l.table.Claim(slot.ClaimID(m.Release.GetClaim())); ok && c.Schedd != s.schedd {
			l.logRefusal("refused to give up a claim", "claim", c.ID, "of", c.Schedd, "asked", s.schedd)
		}
		l.table.Release(s.id, s.schedd, slot.ClaimID(m.Release.GetClaim()))
	case *wire.ToStartd_Renew:
		r := slot.LeaseRenewal{LastHeard: m.Renew.GetHeard(), Since: time.Duration(m.Renew.GetSinceNs()),
			Lease: time.Duration(m.Renew.GetLeaseS()) * time.Second}
		if word, ok := l.table.RenewClaims(boottime.Now(), s.id, s.schedd, r); ok {
			l.sendOn(s.id, &wire.FromStartd{Of: &wire.FromStartd_Renewed{Renewed: &wire.LeasesRenewed{Word: word}}})
		}
	}
}

// onServiceMessage takes in one message about what an attempt, or a later one of its
// service, has beside its program.
func (l *machineLoop) onServiceMessage(s *scheddSession, message *wire.ToStartd) {
	switch m := message.GetOf().(type) {
	case *wire.ToStartd_FetchContent:
		fetchContent(l, s, m.FetchContent)
	case *wire.ToStartd_HoldChecks:
		l.sendToAttempt(s, m.HoldChecks.GetAttempt(), func(id roost.AttemptID) any {
			return claim.HoldChecksCmd{ID: id, For: time.Duration(m.HoldChecks.GetForNs())}
		})
	case *wire.ToStartd_Secrets:
		l.sendToAttempt(s, m.Secrets.GetAttempt(), func(id roost.AttemptID) any {
			return claim.SecretsCmd{ID: id, Secrets: m.Secrets.GetSecrets(), Signals: m.Secrets.GetSignals()}
		})
	case *wire.ToStartd_NameRight:
		l.sendToAttempt(s, m.NameRight.GetAttempt(), func(id roost.AttemptID) any {
			return claim.NameRightCmd{ID: id, Right: m.NameRight.GetRight()}
		})
	}
}

// sendToAttempt sends the runner of an attempt a command, if the attempt is here.
func (l *machineLoop) sendToAttempt(s *scheddSession, ref *wire.AttemptRef, order func(roost.AttemptID) any) {
	if c, ok := l.table.Find(ref.AttemptID(s.schedd)); ok && c.Schedd == s.schedd {
		l.sendCommand(c, order(c.Attempt))
	}
}

// requestClaim finds out what the claim table cannot know of a wish, and has it decided.
func (l *machineLoop) requestClaim(s *scheddSession, r *wire.ClaimRequest, who accountDecision) {
	grant := &wire.Grant{
		Id: r.GetGrant(), Node: l.host.config.Name, Resources: r.GetResources(), Epoch: r.GetEpoch(),
		Capability: r.GetCapability(), Owner: r.GetOwner(),
		Group: r.GetGroup(), Band: r.GetBand(), Victims: r.GetVictims(), Why: r.GetWhy(), ClaimBy: r.GetClaimBy(),
		PortRights: r.GetPortRights(),
	}
	claimReq := slot.ClaimRequest{
		Session: s.id, Schedd: s.schedd, Grant: roost.GrantID{Epoch: r.GetEpoch(), ID: r.GetGrant()},
		Owner: r.GetOwner(),
		UID:   r.GetUid(), GID: r.GetGid(), Resources: r.GetResources().Vector(), CanQueue: r.GetMayWait(),
		GrantDeadline: time.Duration(r.GetClaimBy()), Lease: time.Duration(r.GetLeaseS()) * time.Second,
		TokenValid: wire.CheckClaimToken(l.host.grantKey, grant, s.schedd), AccountError: who.err,
		Env:   &classad.EvalEnv{Now: time.Now(), Steps: maxMatchSteps},
		Alloc: slot.ClaimID(r.GetAlloc()),
	}
	var err error
	if claimReq.Class, err = gpu.ParseClass(r.GetAppClass()); err != nil {
		claimReq.AccountError = err
	}
	if text := r.GetAd(); text != "" {
		ad, err := classad.Parse(text)
		if err != nil {
			claimReq.AccountError = fmt.Errorf("the request's ad: %w", err)
		}
		s.guest.describe(ad, r)
		claimReq.Ad = ad
	}
	if claimReq.Info, err = claimInfo(r, claimReq.Ad); err != nil {
		claimReq.AccountError = err
	}
	if claimReq.Ports, err = l.host.portNeeds(s.schedd, r); err != nil {
		claimReq.AccountError = err
	}
	if claimReq.AccountError == nil {
		claimReq.AccountError = checkDiskSpace(l.host.dirs().Claims())
	}
	if l.ownerState != nil && claimReq.AccountError == nil {
		claimReq.AccountError = l.ownerState.RejectionReason(claimReq.Ad)
	}
	var as userfiles.UserCredential
	if claimReq.AccountError == nil {
		as, claimReq.AccountError = l.claimCredential(s.schedd, r.GetUid(), who.rights)
	}
	claimReq.Victims = preemptionReason(r)
	if c, err := l.table.DecideClaim(boottime.Now(), claimReq); err == nil { // the effects answer
		l.rights[c.ID] = as
		l.host.lastClaim.store(claimReq.Env.Now)
	}
}

// activateClaim starts an attempt, as the user for whom the claim was made.
func (l *machineLoop) activateClaim(s *scheddSession, a *wire.Activate) {
	tasktrace.MarkAttempt(tasktrace.Activated, a.GetAttempt())
	claim, id := slot.ClaimID(a.GetClaim()), a.GetAttempt().AttemptID(s.schedd)
	c, ok := l.table.Claim(claim)
	own := ok && c.Schedd == s.schedd
	if own && a.GetProgram().GetUid() != c.UID {
		err := fmt.Errorf("%w: the claim is of uid %d, and the program of uid %d", roost.PermissionDenied, c.UID,
			a.GetProgram().GetUid())
		l.rejectActivationFor(slot.RejectActivation{Schedd: s.schedd, Claim: claim, Attempt: id, Reason: err.Error()},
			wire.Cause_CAUSE_LAUNCH)
		return
	}
	if why := s.guest.refuses(a.GetProgram()); own && why != "" {
		l.rejectActivationFor(slot.RejectActivation{Schedd: s.schedd, Claim: claim, Attempt: id, Reason: why},
			wire.Cause_CAUSE_LAUNCH)
		return
	}
	before := l.programs[claim] // of an attempt that waits there
	if own {
		l.programs[claim] = a
	}
	if err := l.table.Activate(boottime.Now(), s.id, s.schedd, claim, id, attemptInfo(a.GetProgram())); err != nil {
		if l.programs[claim] = before; before == nil {
			delete(l.programs, claim)
		}
		l.logRefusal("activation refused", "attempt", id, "schedd", s.schedd, "err", err)
	}
}

// maxLoggedRefusals is how many refusals of each kind are logged in a second. A schedd
// whose requests are all refused cannot fill the disk with them.
const maxLoggedRefusals = 20

// logRefusal logs what a schedd was refused, each kind by itself.
func (l *machineLoop) logRefusal(what string, more ...any) {
	if now := boottime.Now(); now-l.refusedFrom >= time.Second {
		for kind, times := range l.refusals {
			if times > maxLoggedRefusals {
				l.host.log.Warn("more was refused than is told", "what", kind, "times", times-maxLoggedRefusals)
			}
		}
		l.refusedFrom, l.refusals = now, map[string]int{}
	}
	if l.refusals[what]++; l.refusals[what] <= maxLoggedRefusals {
		l.host.log.Warn(what, more...)
	}
}
