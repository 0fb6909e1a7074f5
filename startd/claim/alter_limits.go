package claim

import (
	"fmt"

	"github.com/roost-batch/roost/internal/wire"
)

// setAttemptLimits gives an attempt other limits than it began with. The starter sees to
// the walltime, its meter to the CPU time. One that has not been started is started with
// them.
func (h *Runner) setAttemptLimits(a *Attempt, o SetLimitsCmd) {
	a.record.Walltime, a.record.Bounds.CPU = o.Walltime, o.CPUTime
	h.writeRecord(a)
	h.machine.meters.SetCPULimit(h.id, a.id, o.CPUTime)
	switch {
	case a.AwaitsInput():
		a.program.WalltimeNs = int64(o.Walltime)
		if o.CPUTime > 0 && a.program.Bounds == nil {
			a.program.Bounds = &wire.Bounds{}
		}
		if a.program.Bounds != nil {
			a.program.Bounds.CpuNs = int64(o.CPUTime)
		}
		return
	case h.starter != nil:
		h.starter.SetWalltime(a.ref, o.Walltime, fmt.Sprintf("walltime of %v exceeded", o.Walltime))
	}
	if a.checkpoint.policy != nil && a.checkpoint.cancel == nil {
		h.checkpointer().scheduleCheckpoint(a)
	}
}
