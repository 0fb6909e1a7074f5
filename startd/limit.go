package startd

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
)

// limit holds an attempt to other limits than it began with: the starter sees to the walltime, its meter to the CPU time. One that has not been started is
// started with them.
func (h *hand) limit(a *attempt, o limit) {
	a.record.Walltime, a.record.Bounds.CPU = o.walltime, o.cpu
	h.note(a)
	h.m.meters.setCPU(h.id, a.id, o.cpu)
	switch {
	case a.waits():
		a.program.WalltimeNs = int64(o.walltime)
		if o.cpu > 0 && a.program.Bounds == nil {
			a.program.Bounds = &wire.Bounds{}
		}
		if a.program.Bounds != nil {
			a.program.Bounds.CpuNs = int64(o.cpu)
		}
		return
	case h.starter != nil:
		h.starter.Limit(a.ref, o.walltime, fmt.Sprintf("walltime of %v exceeded", o.walltime))
	}
	if a.saving.policy != nil && a.saving.cancel == nil {
		h.nextSave(a)
	}
}

// setCPU holds an attempt to so much CPU time.
func (s *meters) setCPU(claim slot.ClaimID, id roost.AttemptID, cpu time.Duration) {
	if m := s.find(claim, id); m != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.bounds.CPU = cpu
	}
}
