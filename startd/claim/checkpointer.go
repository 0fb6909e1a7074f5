package claim

// checkpointer is the runner of a claim as far as it saves and restores attempts. It
// decides when a checkpoint is due, how it is taken, and how an attempt leaves with one.
// Its state is that of the attempt (checkpointState).
type checkpointer struct{ *Runner }

func (h *Runner) checkpointer() checkpointer { return checkpointer{h} }

// onOwnerResumed has the next checkpoint planned anew, as the machine's owner lets the
// task go on.
func (h checkpointer) onOwnerResumed() {
	if h.attempt != nil && h.attempt.recordedExit == nil && h.attempt.checkpoint.cancel == nil {
		h.scheduleCheckpoint(h.attempt)
	}
}

// resendPending reports again what the schedd may not have heard of a checkpoint.
func (h checkpointer) resendPending() {
	if h.attempt != nil && h.attempt.recordedExit == nil && h.attempt.checkpoint.unstored != nil {
		h.reportCheckpoint(h.attempt.checkpoint.unstored)
	}
	if h.attempt != nil && h.attempt.recordedExit == nil && h.attempt.checkpoint.leaving {
		h.reportLeaving(h.attempt)
	}
}
