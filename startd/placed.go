package startd

import (
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
)

// saved is what a claim holds, by names; nil while it holds nothing.
func (l *loop) saved(c *slot.Claim) *gpu.Saved {
	if !c.Holds() {
		return nil
	}
	s := l.core.Free().Save(c.Placement)
	return &s
}

// placed is the same for its schedd.
func (l *loop) placed(c *slot.Claim) *wire.Placed {
	if !c.Holds() {
		return nil
	}
	f, to := l.core.Free(), &wire.Placed{}
	for _, core := range l.cores(c) {
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

// withdraw notes why an attempt that waited will not start: its schedd reads it as how it ended.
func (l *loop) withdraw(e slot.Withdraw) {
	delete(l.programs, e.Claim.ID)
	l.exits[e.Claim.ID] = &wire.Exited{
		Attempt: reference(e.Attempt), Status: &wire.ExitStatus{Cause: wire.Cause(e.Cause), Reason: e.Reason},
	}
}
