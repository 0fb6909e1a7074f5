package claim

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/startd/starterclient"
)

// leaseEndTimeout is how long a starter may take to end an attempt whose lease is over.
// One that is stopped, or hangs where a signal reaches it, the kernel deals with before
// (startd/starter, kernel_timer.go). What is left is one that waits for a disk that does
// not answer, and one of an earlier release.
const leaseEndTimeout = 5 * time.Second

// endLeaseOverdue ends an attempt in the starter's place. It kills by the control group,
// and by the mark what is in none. The starter reports how it ended when it can.
func (h *Runner) endLeaseOverdue(id roost.AttemptID) {
	if !h.hasOpenAttempt(id) || h.starter == nil {
		return
	}
	h.machine.log.Warn("the starter does not end an attempt whose lease is over", "claim", h.id, "attempt",
		h.attempt.Label())
	if h.group != nil && h.group.TaskDir() != "" {
		if err := h.group.Kill(); err != nil {
			h.machine.log.Error("the task cannot be killed by its control group", "claim", h.id, "err", err)
		}
	}
	if _, err := starterclient.Sweep(h.file.Cookie, h.machine.dirs.ClaimIO(h.id)); err != nil {
		h.machine.log.Error("processes are left", "claim", h.id, "err", err)
	}
}
