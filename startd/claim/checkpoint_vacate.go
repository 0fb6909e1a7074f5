package claim

import (
	"time"
)

// What is saved on its way out.

// vacateCheckpointTime is how long a checkpoint may take on the way out.
func (h checkpointer) vacateCheckpointTime() time.Duration {
	if v := h.attempt.checkpoint.whenDone; v != nil && v.Notice > 0 {
		return ShutdownTime // the machine itself is in a hurry
	}
	return maxVacateTime
}

const maxVacateTime = 5 * time.Minute

// ShutdownTime is how long a checkpoint may take while the machine shuts down.
const ShutdownTime = 40 * time.Second

// vacateWithCheckpoint vacates an attempt with a checkpoint if one is to be taken, and
// reports whether it does. The attempt is suspended from then on, so that no work is
// lost or done twice.
func (h checkpointer) vacateWithCheckpoint(a *Attempt, v VacateCmd) bool {
	s := &a.checkpoint
	if a.isSelfCheckpointing() || v.Fast || !a.storesWorkAfter(v.Cause) || h.checkpointObstacle(a) != "" {
		if s.whenDone != nil && v.Fast {
			s.cancel()
			h.cancelVacateCheckpoint(a)
		}
		return false
	}
	if s.whenDone != nil {
		return true
	}
	s.whenDone = &v
	h.machine.checkpoints.vacating.Add(1)
	// a process that a signal stops inside vfork(2) cannot be saved: then it stands still
	// from when it is
	if h.group != nil {
		h.suspender().suspendTask(a)
	}
	if s.cancel != nil && s.reason != reasonVacate {
		return true // another is taken when this one is: it may be past the moment in which it stood still
	}
	h.checkpointThenVacate(a)
	return true
}

// checkpointThenVacate takes the checkpoint that an attempt leaves with, or has it leave
// without.
func (h checkpointer) checkpointThenVacate(a *Attempt) {
	h.beginCheckpoint(a, reasonVacate)
	if v := a.checkpoint.whenDone; v != nil && a.checkpoint.cancel == nil {
		h.cancelVacateCheckpoint(a)
		h.finishVacate(a, *v, false)
	}
}

// cancelVacateCheckpoint is for an attempt that is not to be saved on its way out any
// more.
func (h checkpointer) cancelVacateCheckpoint(a *Attempt) {
	if a.checkpoint.whenDone != nil {
		a.checkpoint.whenDone = nil
		h.machine.checkpoints.vacating.Add(-1)
	}
}

// finishVacate ends an attempt that was to be saved before.
func (h checkpointer) finishVacate(a *Attempt, v VacateCmd, done bool) {
	if h.starter == nil || a.recordedExit != nil {
		return
	}
	if done {
		v.Fast = true
	} else {
		h.starter.Resume(a.ref)
	}
	h.stopAttempt(a, v)
}
