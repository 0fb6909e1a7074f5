package startd

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
)

// setAttemptLimits holds an attempt to other limits than it began with: the starter sees
// to the walltime, its meter to the CPU time. One that has not been started is started
// with them.
func (h *claimRunner) setAttemptLimits(a *claimAttempt, o setLimitsCmd) {
	a.record.Walltime, a.record.Bounds.CPU = o.walltime, o.cpuTime
	h.writeRecord(a)
	h.host.meters.setCPULimit(h.id, a.id, o.cpuTime)
	switch {
	case a.awaitsInput():
		a.program.WalltimeNs = int64(o.walltime)
		if o.cpuTime > 0 && a.program.Bounds == nil {
			a.program.Bounds = &wire.Bounds{}
		}
		if a.program.Bounds != nil {
			a.program.Bounds.CpuNs = int64(o.cpuTime)
		}
		return
	case h.starter != nil:
		h.starter.SetWalltime(a.ref, o.walltime, fmt.Sprintf("walltime of %v exceeded", o.walltime))
	}
	if a.checkpoint.policy != nil && a.checkpoint.cancel == nil {
		h.scheduleCheckpoint(a)
	}
}

// setCPULimit holds an attempt to so much CPU time.
func (s *attemptMeters) setCPULimit(claim slot.ClaimID, id roost.AttemptID, cpu time.Duration) {
	if m := s.find(claim, id); m != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.bounds.CPU = cpu
	}
}
