package pool

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
)

// adopt adopts the claims of earlier lives of the startd, as startd's adoptAll does. It
// takes those that were written to disk in this life of the host.
func (m *machineNode) adopt() {
	var all []*claimRunner
	for _, id := range slices.Sorted(maps.Keys(m.claimRunners)) {
		h := m.claimRunners[id]
		if h.hostLife != m.hostLife || !h.written || !h.starter.isAlive && h.starter.phase == phaseIdle {
			h.removeAll()
			continue
		}
		h.onStarted = nil
		all = append(all, h)
	}
	slices.SortStableFunc(all, func(a, b *claimRunner) int { return cmp.Compare(a.adoptOrder(), b.adoptOrder()) })
	for _, h := range all {
		m.addClaim(h)
	}
}

// adoptOrder sorts claims with a running task first, then those with resources, then
// those that wait.
func (h *claimRunner) adoptOrder() int {
	switch {
	case h.starter.phase == phaseRunning:
		return 0
	case h.placement != nil:
		return 1
	}
	return 2
}

// addClaim adds a claim to the claim table.
func (m *machineNode) addClaim(h *claimRunner) {
	c, s := h.claim, h.starter
	claim := slot.Claim{
		ID: c.ID, Grant: c.Grant, Schedd: c.Schedd, Owner: c.Owner, Info: c.Info, UID: c.UID, GID: c.GID,
		Class: c.Class, CanQueue: c.CanQueue, Resources: c.Resources, Inside: c.Inside,
		State: slot.Idle, Lease: m.bootTime() + c.LeasePeriod, LeasePeriod: c.LeasePeriod,
	}
	if s.phase != phaseIdle {
		claim.State, claim.Attempt, claim.Running, claim.ProcessesGone = slot.Busy, s.attempt, s.phase == phaseRunning,
			s.phase == phaseOver
		claim.RunningSince = s.began
		if s.program != nil {
			p := s.program
			claim.AttemptInfo = slot.AttemptInfo{Walltime: time.Duration(p.GetWalltimeNs()),
				Expected: time.Duration(p.GetExpectedNs()), NotRestartable: p.GetOnce(),
				Priority: slot.BoundPriority(p.GetPriority())}
		}
	}
	var err error
	if h.placement != nil {
		claim.Placement, err = m.core.Free().Restore(*h.placement)
	}
	if err == nil || claim.State != slot.Busy || claim.ProcessesGone {
		err = m.core.Adopt(m.bootTime(), claim)
	}
	if err != nil {
		h.removeAll()
		return
	}
	h.setLimit(c.Resources) // of a startd that died in between they may be others
	if s.phase == phaseOver {
		x := s.exit
		if x == nil {
			x = attemptExit(s.attempt, wire.Cause_CAUSE_MACHINE, "its starter died, and nobody knows how it ended")
		}
		m.scheduleEvent(m.pool.loop.Now(), evReport, uint64(h.id), &attemptEnded{h.id, x})
	}
}
