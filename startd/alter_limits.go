package startd

import (
	"fmt"

	"github.com/roost-batch/roost/internal/wire"
)

// setAttemptLimits holds an attempt to other limits than it began with: the starter sees
// to the walltime, its meter to the CPU time. One that has not been started is started
// with them.
func (h *claimRunner) setAttemptLimits(a *claimAttempt, o setLimitsCmd) {
	a.record.Walltime, a.record.Bounds.CPU = o.walltime, o.cpuTime
	h.writeRecord(a)
	h.host.meters.SetCPULimit(h.id, a.id, o.cpuTime)
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
