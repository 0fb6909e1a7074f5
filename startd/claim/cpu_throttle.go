package claim

import (
	"cmp"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cgroup"
)

// isReclaimed reports whether the claim has nothing of its own.
func (f *File) isReclaimed() bool { return f.Placed != nil && f.Placed.Reclaimed }

// allCores stands for no quota of CPU time at all. A limit that is set cannot be taken
// away, only raised.
const allCores roost.MilliCPU = 1000 * 1000

// throttleCPU holds the claim's processor time to what production leaves, or lets it have
// again what there is.
func (h *Runner) throttleCPU(o ThrottleCmd) {
	if h.group == nil {
		return
	}
	quota := cmp.Or(o.CPUMax, allCores)
	if h.file.hasCPUQuota(h.machine.config) {
		quota = min(quota, h.file.Resources.CPU)
	}
	if err := h.group.SetLimits(cgroup.GroupLimits{Quota: quota}); err != nil {
		h.machine.log.Warn("cannot hold back a claim", "claim", h.id, "err", err)
	}
}
