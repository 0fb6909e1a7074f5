package claim

// checkpointer is the runner of a claim as far as it saves and restores attempts: when a
// checkpoint is due, how it is taken, and how an attempt leaves with one. Its state is
// that of the attempt (checkpointState).
type checkpointer struct{ *Runner }

func (h *Runner) checkpointer() checkpointer { return checkpointer{h} }
