package claim

import (
	"errors"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/checkpoint/criu"
)

// taskSuspender is the runner of a claim as far as it suspends and resumes an attempt. It
// does that for the schedd, and for checkpoints; the machine's owner suspends apart from
// that (OwnerSuspension). Its state is that of the attempt (checkpointState).
type taskSuspender struct{ *Runner }

func (h *Runner) suspender() taskSuspender { return taskSuspender{h} }

// setSuspended suspends an attempt, or lets it go on. One that is on its way out is left
// alone, and one that is being saved goes on when it is.
func (h taskSuspender) setSuspended(o FreezeCmd) {
	if !h.hasOpenAttempt(o.ID) || h.starter == nil || h.attempt.checkpoint.whenDone != nil {
		return
	}
	h.attempt.checkpoint.suspended, h.attempt.record.Still = o.Frozen, o.Frozen
	h.attempt.isStill.Store(o.Frozen)
	h.writeRecord(h.attempt)
	switch {
	case o.Frozen:
		h.suspendTask(h.attempt)
	case h.attempt.checkpoint.cancel == nil:
		h.starter.Resume(h.attempt.ref)
	}
}

// suspendTask stops the task at once by its group. A busy task shares its time with its
// starter, which gets to it later, and only stops the walltime then. Without a group the
// starter does both.
func (h taskSuspender) suspendTask(a *Attempt) {
	if h.freezeCgroup(a) {
		h.starter.Frozen(a.ref)
	} else {
		h.starter.Suspend(a.ref)
	}
}

// freezeCgroup freezes the task's group, and reports whether it did.
func (h taskSuspender) freezeCgroup(a *Attempt) bool {
	if h.group == nil {
		return false
	}
	if a.record.Boxed && a.checkpoint.pid != 0 {
		h.detachSandboxInit(a)
	}
	if err := h.group.Freeze(); err != nil {
		h.machine.log.Warn("cannot freeze", "claim", h.id, "err", err)
		return false
	}
	return true
}

// detachSandboxInit tells the first process of the sandbox, before it is frozen, to live
// on without its parent. If the owner has it frozen, it is let out for that.
func (h taskSuspender) detachSandboxInit(a *Attempt) {
	if !h.ownerSuspension.IsFrozenOutside() {
		criu.Detach(a.checkpoint.pid)
		return
	}
	err := h.group.RunOneWhileFrozen(a.checkpoint.pid, func() { criu.Detach(a.checkpoint.pid) })
	if err != nil {
		h.machine.log.Error("the first process of a task cannot be told that it is saved", "attempt", a.Label(),
			"err", err)
	}
	if errors.Is(err, roost.Conflict) { // it must not run outside
		h.group.KillAll()
	}
}

// reapplySuspend suspends or resumes an attempt as was asked for while a checkpoint was
// taken. Whoever takes one resumes what was not suspended before, and resuming waited.
func (h taskSuspender) reapplySuspend(a *Attempt) {
	s := &a.checkpoint
	if a.recordedExit != nil || h.starter == nil {
		return
	}
	switch {
	case s.whenDone != nil || s.suspended && !s.wasSuspended:
		h.suspendTask(a)
	case s.wasSuspended && !s.suspended:
		h.starter.Resume(a.ref)
	case !s.suspended && h.group != nil && h.group.Frozen():
		// The agent of a startd that was killed was still at it: this one found the task
		// standing still, and left it so.
		if err := h.group.Thaw(); err != nil {
			h.machine.log.Error("cannot thaw", "attempt", a.Label(), "err", err)
		}
	}
}
