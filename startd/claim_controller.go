package startd

import (
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/claim"
	"github.com/roost-batch/roost/startd/desktop/policy"
	"github.com/roost-batch/roost/startd/slot"
)

// loopClaimController is by what the loop controls claims for the machine's owner.
type loopClaimController struct{ *machineLoop }

// RunnerIDs implements desktop.ClaimController.
func (l loopClaimController) RunnerIDs() []slot.ClaimID { return slices.Collect(maps.Keys(l.runners)) }

// HasRunner implements desktop.ClaimController.
func (l loopClaimController) HasRunner(id slot.ClaimID) bool { return l.runners[id] != nil }

// SetSuspended implements desktop.ClaimController.
func (l loopClaimController) SetSuspended(id slot.ClaimID, why string) {
	l.suspendClaim(l.runners[id], why)
}

func (l *machineLoop) suspendClaim(h *claim.Runner, why string) {
	if err := h.Suspension().Set(why); err != nil {
		l.host.log.Error("a claim cannot be stopped for the machine's owner", "claim", h.ID(), "err", err)
	}
}

// Resume implements desktop.ClaimController.
func (l loopClaimController) Resume(id slot.ClaimID) {
	h := l.runners[id]
	l.suspendClaim(h, "")
	h.Send(claim.OwnerResumedCmd{})
}

// ReportSuspended implements desktop.ClaimController.
func (l loopClaimController) ReportSuspended(c *slot.Claim, why string) {
	if why != "" {
		l.host.stats.addInterruption(time.Now())
	}
	l.sendTo(c.Schedd, &wire.FromStartd{Of: &wire.FromStartd_Suspended{Suspended: &wire.Suspended{
		Attempt: wire.FromAttempt(c.Attempt), Frozen: why != "", Reason: why,
	}}})
}

// TrimMemory implements desktop.ClaimController.
func (l loopClaimController) TrimMemory(id slot.ClaimID) { l.runners[id].Send(claim.TrimMemoryCmd{}) }

// Kill implements desktop.ClaimController.
func (l loopClaimController) Kill(id slot.ClaimID) { go l.runners[id].Suspension().Kill() }

// TaskUsage implements desktop.ClaimController.
func (l loopClaimController) TaskUsage(c *slot.Claim) (memory roost.Bytes, savable bool) {
	_, memory, _ = l.host.meters.CurrentUse(c.ID, c.Attempt)
	return memory, l.host.meters.CheckpointInfo(c).Possible
}

// LogEffect implements desktop.ClaimController.
func (l loopClaimController) LogEffect(order policy.Effect) {
	switch o := order.(type) {
	case policy.LogTransition:
		l.host.log.Info("owner", "claim", o.ID, "from", o.From, "to", o.To, "cause", o.Cause)
	case policy.LogPolicyError:
		l.host.log.Warn("policy", "what", o.Message)
	}
}

// waitQuiesced waits, beside the loop, until everything stands still that has to.
func (l *machineLoop) waitQuiesced() {
	o := l.ownerState
	o.freezeBatch++
	o.batchPending = true
	all := make([]*claim.OwnerSuspension, 0, len(o.Suspended()))
	for id := range o.Suspended() {
		if h := l.runners[id]; h != nil {
			all = append(all, h.Suspension())
		}
	}
	batch, began := o.freezeBatch, o.freezeStarted
	go func() {
		l.host.groups.Expedite(true)
		left := claim.WaitQuiesced(all)
		l.host.groups.Expedite(false)
		l.host.postEvent(quiescedEvent{batch, time.Since(began), left})
	}()
}

// onQuiesced takes in that a batch has come to rest. Only then has the guard's word been
// acted on.
func (l *machineLoop) onQuiesced(n quiescedEvent) {
	o := l.ownerState
	if n.remaining > 0 {
		l.host.log.Error("tasks do not come to rest: they wait in the kernel", "claims", n.remaining, "for", n.duration)
	}
	if n.batch != o.freezeBatch {
		return
	}
	o.batchPending = false
	l.host.stats.addFreezeTime(time.Now(), n.duration)
	l.metrics.FreezeTime.Observe(n.duration)
	if o.observations != nil {
		o.actedOn = o.observations.GetSequence()
	}
	if still := len(o.Suspended()); still > 0 {
		l.host.log.Info("tasks stand still for the owner of the machine", "claims", still, "took", n.duration)
	}
	l.updateGuardReport()
}
