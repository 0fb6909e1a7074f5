package desktop

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/mutant"
	"github.com/roost-batch/roost/startd/desktop/policy"
	"github.com/roost-batch/roost/startd/slot"
)

// ApplyResult is what was done when the owner's policy was asked.
type ApplyResult struct {
	Evaluated        bool // it was: the rest is false if not
	GuardReported    bool // the guard had spoken, or was lost, since it was asked before
	SuspendedRunning bool // claims are to stand still that ran
	// likewise, or what was left standing was looked at: it is to be seen to that all
	// stands still that has to
	NeedsQuiesce        bool
	HasEffects          bool // there were any
	AvailabilityChanged bool // the machine is lent and was not, or the other way, or for another reason
}

// Apply asks whether tasks have to stand still, or go, if something has changed by which
// that could be decided. It returns when to be called again at the latest.
func (l *PolicyEnforcer) Apply(now slot.BootTime) (did ApplyResult, wake slot.BootTime) {
	if !l.claimsChanged && !l.observationsChanged && now < l.nextCheck {
		return did, l.nextCheck
	}
	if l.claimsChanged {
		l.Owner.SetClaims(now, l.policyClaims())
	}
	var orders []policy.Effect
	orders, l.nextCheck = l.Owner.Todo(now)
	did = ApplyResult{Evaluated: true, GuardReported: l.observationsChanged, HasEffects: len(orders) > 0}
	l.claimsChanged, l.observationsChanged = false, false
	did.SuspendedRunning = l.performEffects(now, orders)
	did.NeedsQuiesce = did.SuspendedRunning
	if did.GuardReported && !l.synced {
		l.synced = true
		l.sync()
		did.NeedsQuiesce = true
	}
	willing, why := l.Owner.Available()
	if willing {
		why = ""
	}
	did.AvailabilityChanged = why != l.unavailableReason
	l.unavailableReason = why
	l.claimTable.SetAvailable(l.publicReason(why))
	if l.ownerActive() || !l.synced { // until the guard has been heard, somebody may be there
		l.claimTable.ReleaseIdle(l.publicReason(why))
	}
	return did, l.nextCheck
}

// ownerActive reports whether the machine is its owner's at this moment, and not only not
// lent yet.
func (l *PolicyEnforcer) ownerActive() bool {
	ad := classad.New()
	l.Owner.Describe(ad)
	busy, _ := ad.Bool(roost.AttrOwnerBusy)
	return busy
}

// sync makes all claims as they are wanted to be, whatever earlier starts and the guard
// did with them.
func (l *PolicyEnforcer) sync() {
	for _, id := range l.controller.RunnerIDs() {
		why := l.suspended[id]
		if mutant.Active(mutant.ResumesOnRestart) {
			why = ""
		}
		l.controller.SetSuspended(id, why)
	}
}

// policyClaims are the claims in the owner's words.
func (l *PolicyEnforcer) policyClaims() []policy.PolicyClaim {
	all := l.claimTable.Claims()
	to := make([]policy.PolicyClaim, 0, len(all))
	for _, c := range all {
		if !c.HasResources() {
			continue
		}
		t := policy.PolicyClaim{ID: uint64(c.ID), AttemptStarted: c.RunningSince, GPUs: int(c.Resources.GPUs),
			Running: c.State == slot.Busy || c.State == slot.Vacating}
		if t.Running {
			t.Job = jobAd(c)
		}
		t.Memory, t.CanCheckpoint = l.controller.TaskUsage(c)
		to = append(to, t)
	}
	for id := range l.suspended {
		if _, ok := l.claimTable.Claim(id); !ok {
			delete(l.suspended, id)
		}
	}
	for id := range l.killed {
		if _, ok := l.claimTable.Claim(id); !ok {
			delete(l.killed, id)
		}
	}
	return to
}

// jobAd is what the machine knows of the job on a claim: startd/desktop/policy knows the names.
func jobAd(c *slot.Claim) *classad.Ad {
	ad := classad.New()
	ad.SetString(roost.AttrOwner, c.Owner)
	ad.SetString(roost.AttrGroup, c.Info.Group)
	ad.SetString(roost.AttrBand, c.Info.Band.String())
	ad.SetString(roost.AttrAppClass, c.Class.String())
	ad.SetString(roost.AttrJob, c.Attempt.Task.String())
	ad.SetInt(roost.AttrRequestMemory, int64(c.Resources.Memory/roost.MiB))
	ad.SetReal(roost.AttrRequestCpus, c.Resources.CPU.Cores())
	ad.SetInt(roost.AttrRequestGpus, int64(c.Resources.GPUs))
	if c.Walltime > 0 {
		ad.SetInt(roost.AttrWalltime, int64(c.Walltime/time.Second))
	}
	return ad
}
