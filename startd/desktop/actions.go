package desktop

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/startd/desktop/policy"
	"github.com/roost-batch/roost/startd/slot"
)

// performEffects performs the effects of the owner policy, freezes first. It reports
// whether there was a freeze.
func (l *PolicyEnforcer) performEffects(now roost.BootTime, orders []policy.Effect) (froze bool) {
	for _, o := range orders {
		if f, ok := o.(policy.FreezeClaim); ok {
			froze = true
			l.suspend(slot.ClaimID(f.ID), l.publicReason(f.Reason))
		}
	}
	for _, o := range orders {
		l.performEffect(now, o)
	}
	return froze
}

// suspend freezes a claim. It ends a claim whose task has not started yet.
func (l *PolicyEnforcer) suspend(id slot.ClaimID, why string) {
	c, ok := l.claimTable.Claim(id)
	if !ok || !l.controller.HasRunner(id) {
		return
	}
	l.suspended[id] = why
	l.controller.SetSuspended(id, why)
	if c.State == slot.Busy && !c.Running {
		l.claimTable.EndClaim(id, true, why)
		return
	}
	l.controller.ReportSuspended(c, why)
}

func (l *PolicyEnforcer) performEffect(now roost.BootTime, order policy.Effect) {
	switch o := order.(type) {
	case policy.ResumeClaim:
		l.resume(now, slot.ClaimID(o.ID))
	case policy.FreeGPU:
		l.claimTable.EndClaim(slot.ClaimID(o.ID), false, "its GPU is needed: "+l.publicReason(o.Reason))
	case policy.TrimMemory:
		if id := slot.ClaimID(o.ID); l.controller.HasRunner(id) {
			l.controller.TrimMemory(id)
		}
	case policy.VacateClaim:
		id := slot.ClaimID(o.ID)
		c, ok := l.claimTable.Claim(id)
		asked := ok && c.State == slot.Vacating // it was frozen during the time that it had to end
		l.claimTable.EndClaim(id, o.AlreadyFrozen && asked, l.publicReason(o.Reason))
	case policy.KillClaim:
		l.kill(slot.ClaimID(o.ID), l.publicReason(o.Reason))
	case policy.LogTransition, policy.LogPolicyError:
		l.controller.LogEffect(o)
	}
}

// resume resumes a claim unless its lease has expired. If the whole machine was paused
// for long, as a host may do with a virtual machine, the owner is found away and the
// leases expired at the same moment, and the next attempt may run elsewhere.
func (l *PolicyEnforcer) resume(now roost.BootTime, id slot.ClaimID) {
	c, ok := l.claimTable.Claim(id)
	if ok && now >= c.Lease {
		return
	}
	delete(l.suspended, id)
	if !l.controller.HasRunner(id) {
		return
	}
	l.controller.Resume(id)
	if ok && c.State == slot.Busy && c.Running {
		l.controller.ReportSuspended(c, "")
	}
}

// kill ends a claim at once. The second call kills its processes directly, as its starter
// may be stuck.
func (l *PolicyEnforcer) kill(id slot.ClaimID, why string) {
	l.claimTable.EndClaim(id, true, why)
	if l.killed[id] && l.controller.HasRunner(id) {
		l.controller.Kill(id)
	}
	l.killed[id] = true
}
