package startd

import (
	"errors"

	"github.com/roost-batch/roost"
)

// shrink has the kernel take back what the claim's task can do without. That takes time, and the hand has other things to do.
func (h *hand) shrink() {
	group := h.group
	if group == nil {
		return
	}
	go func() {
		switch freed, err := group.Shrink(); {
		case errors.Is(err, roost.Unavailable):
			h.m.log.Warn("memory cannot be taken back", "claim", h.id, "err", err)
		case err == nil:
			h.m.log.Info("memory given back", "claim", h.id, "bytes", freed)
		}
	}()
}

// How readily the kernel kills a task when the machine runs out of memory (oom_score_adj): before daemons in any case, and before everything else where
// somebody sits, or where the memory is only lent.
const (
	expendable     = 500
	mostExpendable = 900
)

func (h *hand) expendable() int32 {
	if h.m.own.Guarded() || h.file.reclaimed() {
		return mostExpendable
	}
	return expendable
}
