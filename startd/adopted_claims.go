package startd

import (
	"cmp"
	"slices"
	"sync"

	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/startd/claim"
	"github.com/roost-batch/roost/startd/slot"
)

// adoptAll takes over the claims of earlier starts, and removes what is left of others.
// It runs before anything else does.
func (l *machineLoop) adoptAll(claims []slot.ClaimID) {
	all := make([]*claim.Adopted, len(claims))
	var looking sync.WaitGroup
	for i, id := range claims {
		looking.Go(func() { all[i] = l.host.claims.Adopt(id) })
	}
	looking.Wait()
	adopted := make(map[string]bool)
	slices.SortStableFunc(all, func(a, b *claim.Adopted) int {
		return cmp.Compare(a.Order(), b.Order())
	})
	for _, f := range all {
		if f != nil && l.adopt(f) {
			adopted[f.Runner.ID().String()] = true
		}
	}
	if l.ownerState == nil { // it had an owner, who was there
		for _, h := range l.runners {
			if h.Suspension().IsFrozenOutside() {
				l.suspendClaim(h, "")
			}
		}
	}
	l.host.claims.SweepFiles(adopted)
	l.host.checkpoints.Sweep(all)
	l.host.releaseImages()
	l.sweepGroups()
}

// sweepGroups removes the groups of claims that are not in the claim table. Nothing of
// theirs runs any more but what has escaped from its starter.
func (l *machineLoop) sweepGroups() {
	adopted := make(map[string]bool)
	for id := range l.runners {
		adopted[id.String()] = true
	}
	l.host.groups.Sweep(adopted)
}

// adopt enters a claim into the table and starts its runner.
func (l *machineLoop) adopt(f *claim.Adopted) bool {
	h := f.Runner
	c := f.Resume()
	placed, cores := f.Placement()
	l.runners[h.ID()] = h
	go h.Run()
	var err error
	if placed != nil {
		c.Placement, err = l.table.Free().Restore(*placed)
	}
	if err == nil || c.State != slot.Busy || c.ProcessesGone {
		err = l.table.Adopt(boottime.Now(), c)
	}
	if err != nil {
		l.host.log.Error("claim cannot be taken over", "claim", h.ID(), "err", err)
		h.Send(claim.RemoveCmd{})
		return false
	}
	l.pids[h.ID()] = f.State.PID
	if l.host.config.Pin && cores != nil {
		l.pinned[h.ID()] = cores
	}
	if c.Info.WholeCores && cores != nil {
		l.pinned[h.ID()] = l.hardware.wholeCoresOf(cores)
	}
	l.host.log.Info("claim taken over", "claim", h.ID(), "schedd", c.Schedd, "phase", f.State.Phase, "starter gone",
		f.StarterDead)
	if f.StarterDead {
		f.ReportStarterDeath()
	}
	return true
}
