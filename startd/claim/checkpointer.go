package claim

// checkpointer is the runner of a claim as far as it saves and restores attempts. It
// decides when a checkpoint is due, how it is taken, and how an attempt leaves with one.
// Its state is that of the attempt (checkpointState).
type checkpointer struct{ *Runner }

func (h *Runner) checkpointer() checkpointer { return checkpointer{h} }

// handle carries out commands about checkpoints.
func (h checkpointer) handle(order any) {
	switch o := order.(type) {
	case CheckpointCmd:
		if h.hasAttempt(o.ID) {
			h.beginCheckpoint(h.attempt, o.Reason)
		}
	case checkpointDue:
		if h.hasAttempt(o.id) && h.attempt.recordedExit == nil {
			h.onCheckpointDue(h.attempt)
		}
	case probeDumpableCmd:
		if h.hasAttempt(o.id) && h.attempt.recordedExit == nil {
			h.probeDumpable(h.attempt)
		}
	case dumpDone:
		if h.hasAttempt(o.id) {
			h.reapplySuspend(h.attempt)
		}
	case checkpointDone:
		h.onCheckpointDone(o)
	case imageFetched:
		h.onImageFetched(o)
	case ImageStoredCmd:
		if h.hasAttempt(o.ID) {
			h.onImageStored(h.attempt, o.Sequence)
		}
	case OwnerResumedCmd:
		if h.attempt != nil && h.attempt.recordedExit == nil && h.attempt.checkpoint.cancel == nil {
			h.scheduleCheckpoint(h.attempt)
		}
	case ResendPendingCmd:
		if h.attempt != nil && h.attempt.recordedExit == nil && h.attempt.checkpoint.unstored != nil {
			h.reportCheckpoint(h.attempt.checkpoint.unstored)
		}
	}
}
