package claim

import (
	"slices"

	"github.com/roost-batch/roost/internal/cgroup"
)

// bindCores binds the claim's tasks to other cores while they run.
func (h claimResizer) bindCores(o CoresCmd) {
	if h.group == nil || len(o.Cores) == 0 || slices.Equal(o.Cores, h.file.Cores) {
		return
	}
	if err := h.group.SetLimits(cgroup.GroupLimits{Cores: o.Cores}); err != nil {
		h.machine.log.Warn("a claim cannot be bound to other cores", "claim", h.id, "cores", o.Cores, "err", err)
		return
	}
	h.file.Cores = o.Cores
	if err := writeClaimFile(h.dir, h.file); err != nil {
		h.machine.log.Warn("the cores of a claim cannot be written down", "claim", h.id, "err", err)
	}
}
