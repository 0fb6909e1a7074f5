package pool

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
)

// adopt takes over the claims of earlier starts of the startd, as startd's adoptAll: those of this life of the host that were written down.
func (m *machineNode) adopt() {
	var all []*hand
	for _, id := range slices.Sorted(maps.Keys(m.hands)) {
		h := m.hands[id]
		if h.host != m.host || !h.written || !h.starter.lives && h.starter.phase == idle {
			h.dismiss()
			continue
		}
		h.later = nil
		all = append(all, h)
	}
	slices.SortStableFunc(all, func(a, b *hand) int { return cmp.Compare(a.rank(), b.rank()) })
	for _, h := range all {
		m.take(h)
	}
}

// rank puts claims on which something runs before those that hold something, and these before those that wait.
func (h *hand) rank() int {
	switch {
	case h.starter.phase == running:
		return 0
	case h.placed != nil:
		return 1
	}
	return 2
}

// take enters a claim into the books.
func (m *machineNode) take(h *hand) {
	c, s := h.claim, h.starter
	claim := slot.Claim{
		ID: c.ID, Grant: c.Grant, Schedd: c.Schedd, Owner: c.Owner, About: c.About, UID: c.UID, GID: c.GID, Class: c.Class, MayWait: c.MayWait, Resources: c.Resources,
		State: slot.Idle, Lease: m.boot() + c.Period, Period: c.Period,
	}
	if s.phase != idle {
		claim.State, claim.Attempt, claim.Running, claim.Over = slot.Busy, s.attempt, s.phase == running, s.phase == over
		claim.Began = s.began
		if s.program != nil {
			p := s.program
			claim.Terms = slot.Terms{Walltime: time.Duration(p.GetWalltimeNs()), Expected: time.Duration(p.GetExpectedNs()), Once: p.GetOnce()}
		}
	}
	var err error
	if h.placed != nil {
		claim.Placement, err = m.core.Free().Restore(*h.placed)
	}
	if err == nil || claim.State != slot.Busy || claim.Over {
		err = m.core.Adopted(m.boot(), claim)
	}
	if err != nil {
		h.dismiss()
		return
	}
	if s.phase == over {
		x := s.exit
		if x == nil {
			x = exit(s.attempt, wire.Cause_CAUSE_MACHINE, "its starter died, and nobody knows how it ended")
		}
		m.plan(m.p.k.Now(), evNews, uint64(h.id), &ended{h.id, x})
	}
}
