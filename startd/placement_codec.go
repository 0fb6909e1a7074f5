package startd

import (
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
)

// savedPlacement is what a claim holds, by names; nil while it holds nothing.
func (l *machineLoop) savedPlacement(c *slot.Claim) *gpu.SavedPlacement {
	if !c.HasResources() {
		return nil
	}
	s := l.table.Free().Save(c.Placement)
	return &s
}

// wirePlacement is the same for its schedd.
func (l *machineLoop) wirePlacement(c *slot.Claim) *wire.Placed {
	if !c.HasResources() {
		return nil
	}
	f, to := l.table.Free(), &wire.Placed{Ports: l.host.wirePorts(c)}
	for _, core := range l.boundCores(c) {
		to.Cores = append(to.Cores, uint32(core))
	}
	for _, part := range c.Placement.Parts {
		to.Units = append(to.Units, f.Unit(part.Unit).Name)
	}
	for _, s := range c.Placement.Shares {
		d := f.Devices()[s.Device]
		to.Gpus = append(to.Gpus, &wire.Placed_Gpu{
			Uuid: d.UUID, Index: uint32(d.Index), Model: d.Model, Memory: int64(s.Memory), Whole: s.Whole,
		})
	}
	return to
}

// recordCancelled notes why an attempt that waited will not start: its schedd reads it as
// how it ended.
func (l *machineLoop) recordCancelled(e slot.CancelQueued) {
	delete(l.programs, e.Claim.ID)
	l.exits[e.Claim.ID] = &wire.Exited{
		Attempt: wire.FromAttempt(e.Attempt), Status: &wire.ExitStatus{Cause: wire.Cause(e.Cause), Reason: e.Reason},
	}
}
