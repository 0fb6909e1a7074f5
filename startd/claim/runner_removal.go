package claim

import (
	"os"

	"github.com/roost-batch/roost"
)

// discardAttempt removes what is left of an attempt whose end its schedd knows.
func (h *Runner) discardAttempt(id roost.AttemptID) {
	if !h.hasAttempt(id) {
		return
	}
	a := h.attempt
	h.attempt = nil
	h.sharedAttempt.Store(nil)
	if h.starter != nil {
		h.starter.DiscardAttempt(a.ref)
	}
	h.removeAttemptFiles(a)
}

// removeClaim ends the starter; the rest happens when it is gone.
func (h *Runner) removeClaim(retain bool) {
	if h.stopping {
		return
	}
	h.stopping, h.keepFiles = true, retain
	if h.starter == nil || h.starter.Release() != nil {
		h.finish()
	}
}

// finish ends the runner.
func (h *Runner) finish() {
	if h.done {
		return
	}
	h.done = true
	h.removeCgroup() // its starter is gone
	if h.keepFiles {
		if h.attempt != nil {
			h.attempt.closeFiles()
		}
		return
	}
	if h.attempt != nil {
		h.removeAttemptFiles(h.attempt)
	}
	h.dirs.remove()
	if err := os.RemoveAll(h.dir); err != nil {
		h.machine.log.Warn("cannot remove a claim", "claim", h.id, "err", err)
	}
}
