package desktop

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/mutant"
	"github.com/roost-batch/roost/startd/desktop/policy"
	"github.com/roost-batch/roost/startd/slot"
)

// ApplyResult is the result of evaluating the owner policy.
type ApplyResult struct {
	Evaluated        bool // the policy was evaluated; otherwise the other fields are false
	GuardReported    bool // the guard reported, or was lost, since the last evaluation
	SuspendedRunning bool // running claims are to be frozen
	// running claims are to be frozen, or those of an earlier start were synced: the
	// caller must check that all of them are frozen
	NeedsQuiesce        bool
	HasEffects          bool // there were effects
	AvailabilityChanged bool // the machine's availability, or the reason, changed
}

// Apply evaluates the owner policy if its inputs have changed, and performs the effects.
// It returns the latest time for the next call.
func (l *PolicyEnforcer) Apply(now roost.BootTime) (did ApplyResult, wake roost.BootTime) {
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
	if l.ownerActive() || !l.synced { // before the guard's first report the owner may be active
		l.claimTable.ReleaseIdle(l.publicReason(why))
	}
	return did, l.nextCheck
}

// ownerActive reports whether the owner is using the machine now. False includes the time
// until the machine is available again.
func (l *PolicyEnforcer) ownerActive() bool {
	ad := classad.New()
	l.Owner.Describe(ad)
	busy, _ := ad.Bool(roost.AttrOwnerBusy)
	return busy
}

// sync sets all claims to their intended state. An earlier start or the guard may have
// changed it.
func (l *PolicyEnforcer) sync() {
	for _, id := range l.controller.RunnerIDs() {
		why := l.suspended[id]
		if mutant.Active(mutant.ResumesOnRestart) {
			why = ""
		}
		l.controller.SetSuspended(id, why)
	}
}

// policyClaims converts the claims to package owner's form.
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

// jobAd returns the attributes of the job on a claim. Package startd/desktop/policy
// defines their names.
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
