package startd

import (
	"time"
)

// What is saved on its way out.

// vacateTime is how long a checkpoint may take on the way out.
func (h *hand) vacateTime() time.Duration {
	if v := h.now.saving.leave; v != nil && v.notice > 0 {
		return lastSave // the machine itself is in a hurry
	}
	return longestVacate
}

const longestVacate = 5 * time.Minute

// saveAndLeave vacates an attempt with a checkpoint, if one is to be taken: it stands still from now on, so that no work is lost or done
// twice. It reports whether it does.
func (h *hand) saveAndLeave(a *attempt, v vacate) bool {
	s := &a.saving
	if a.savesItself() || v.fast || !a.keepsWork(v.cause) || h.savable(a) != "" {
		if s.leave != nil && v.fast {
			s.cancel()
			h.unleave(a)
		}
		return false
	}
	if s.leave != nil {
		return true
	}
	s.leave = &v
	h.m.leaving.Add(1)
	if h.group != nil { // a process that a signal stops inside vfork(2) cannot be saved: then it stands still from when it is
		h.suspend(a)
	}
	if s.cancel != nil && s.why != onVacate {
		return true // another is taken when this one is: it may be past the moment in which it stood still
	}
	h.saveLast(a)
	return true
}

// saveLast takes the checkpoint that an attempt leaves with, or has it leave without.
func (h *hand) saveLast(a *attempt) {
	h.save(a, onVacate)
	if v := a.saving.leave; v != nil && a.saving.cancel == nil {
		h.unleave(a)
		h.leave(a, *v, false)
	}
}

// unleave is for an attempt that is not to be saved on its way out any more.
func (h *hand) unleave(a *attempt) {
	if a.saving.leave != nil {
		a.saving.leave = nil
		h.m.leaving.Add(-1)
	}
}

// leave ends an attempt that was to be saved before.
func (h *hand) leave(a *attempt, v vacate, done bool) {
	if h.starter == nil || a.exited != nil {
		return
	}
	if done {
		v.fast = true
	} else {
		h.starter.Resume(a.ref)
	}
	h.stop(a, v)
}
