package pool

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/failpoint"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
)

// claimResize is a claim whose limits change, as package startd/claim changes them. The
// larger size is on disk before the limits change, and the new one afterwards.
type claimResize struct {
	claim             slot.ClaimID
	attempt           roost.AttemptID
	held, to          roost.Resources
	saved, savedAfter gpu.SavedPlacement
	isWritten         bool // the larger size can be written to the disk
}

// requestResize does what the startd's requestResize does.
func requestResize(m *machineNode, schedd string, r *wire.Resize) {
	a, to := attemptID(schedd, r.GetAttempt()), r.GetResources().Vector()
	if c, ok := m.core.Find(a); ok && c.Schedd == schedd && r.GetAd() != "" {
		ad, err := classad.Parse(r.GetAd())
		if err == nil {
			err = slot.ResizesOf(m.core).CheckRequirements(c, ad, &classad.EvalEnv{Now: m.wallTime()})
		}
		if err != nil {
			m.performResize(slot.ReportResized{Claim: c, Attempt: a, To: to, Refusal: err.Error()})
			return
		}
	}
	slot.ResizesOf(m.core).Request(m.bootTime(), schedd, a, to)
}

// performResize performs one effect of a resize.
func (m *machineNode) performResize(effect slot.Effect) {
	switch e := effect.(type) {
	case slot.ResizeClaim:
		saved := m.core.Free().Save(e.Claim.Placement)
		takes, ok := m.writeTime()
		m.scheduleEvent(m.pool.loop.Now()+takes/10, evReport, uint64(e.Claim.ID), &claimResize{claim: e.Claim.ID,
			attempt: e.Attempt, held: e.Held, to: e.To, saved: saved, savedAfter: saved.Resized(e.To), isWritten: ok})
	case slot.ReportResized:
		m.sendToSchedd(e.Claim.Schedd, &wire.FromStartd{Of: &wire.FromStartd_Resized{Resized: &wire.Resized{
			Attempt: reference(e.Attempt), Resources: wire.FromResources(e.To), Reason: e.Refusal,
			ReadsAd: true,
		}}})
	}
}

// resizeClaim changes the limits of a claim. A startd that crashes in between adopts what
// is on its disk.
func (m *machineNode) resizeClaim(r *claimResize) {
	refusal := "its attempt has ended"
	if h := m.claimRunners[r.claim]; h != nil && h.starter.attempt == r.attempt && h.starter.phase < phaseOver {
		refusal = h.resize(r)
	}
	if !m.pool.passFailpoint(m.hostNode, failpoint.StartdAfterResize) {
		slot.ResizesOf(m.core).Done(m.bootTime(), r.claim, refusal)
	}
}

// resize does what startd/claim's changeSize does. It returns why the claim stays as it
// is; empty: it does not.
func (h *claimRunner) resize(r *claimResize) (refusal string) {
	m := h.machine
	if !r.isWritten || m.diskFullUntil > m.pool.loop.Now() {
		return "the size of the claim could not be written down: no space left on device"
	}
	before, placed := h.claim.Resources, h.placement
	h.claim.Resources = r.held
	if h.claim.Inside == 0 {
		h.placement = &r.saved
	}
	m.pool.passFailpoint(m.hostNode, failpoint.StartdInResize)
	if used := m.pool.cfg.Jobs[h.starter.job].MemoryUse; used > r.to.Memory && r.to.Memory < before.Memory {
		h.claim.Resources, h.placement = before, placed
		return fmt.Sprintf("its processes use %v of memory, and it would have %v", used, r.to.Memory)
	}
	h.setLimit(r.to)
	if h.claim.Resources = r.to; h.claim.Inside == 0 {
		h.placement = &r.savedAfter
	}
	return ""
}

// setLimit changes what the processes of a claim may use.
func (h *claimRunner) setLimit(to roost.Resources) {
	if h.limit == to {
		return
	}
	if h.starter.phase == phaseRunning {
		h.machine.pool.countSize(h.starter, to)
	}
	h.limit = to
	h.machine.pool.observe(audit.Event{Type: audit.Sized, Node: h.machine.name, Claim: uint64(h.id), Resources: to})
}

// countSize counts that a running task has other resources from now on.
func (p *Pool) countSize(s *starterProcess, to roost.Resources) {
	p.coreSeconds = p.CoreSeconds()
	p.lastChange = p.loop.Now()
	p.usedResources = p.usedResources.Sub(s.runner.limit).Add(to)
	p.usedByOwner[p.callerOf(s.job).User] += to.CPU - s.runner.limit.CPU
}
