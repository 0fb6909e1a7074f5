package claim

import (
	"errors"

	"github.com/roost-batch/roost"
)

// trimMemory has the kernel take back what the claim's task can do without. That takes
// time, and the runner has other things to do.
func (h *Runner) trimMemory() {
	group := h.group
	if group == nil {
		return
	}
	go func() {
		switch freed, err := group.TrimMemory(); {
		case errors.Is(err, roost.Unavailable):
			h.machine.log.Warn("memory cannot be taken back", "claim", h.id, "err", err)
		case err == nil:
			h.machine.log.Info("memory given back", "claim", h.id, "bytes", freed)
		}
	}()
}

// How readily the kernel kills a task when the machine runs out of memory
// (oom_score_adj): before daemons in any case, and before everything else where somebody
// sits, or where the memory is only lent, or may be more than was asked for.
const (
	taskOOMScore    = 500
	maxTaskOOMScore = 900
)

func (h launcher) oomScore() int32 {
	if h.machine.config.NeedsGuard() || h.file.isReclaimed() || h.file.About.MemorySlack {
		return maxTaskOOMScore
	}
	return taskOOMScore
}
