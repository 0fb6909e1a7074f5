package criu

import "context"

// restoreByAgent restores a task by an agent, as the starter does. Its first process
// becomes a child of the caller's process if that is a subreaper (prctl(2)), else of the
// process that reaps orphans. A *CheckpointError describes a fault of image or machine.
func restoreByAgent(ctx context.Context, exe string, spec RestoreSpec) (RestoreResult, error) {
	ctx, stop := context.WithTimeout(ctx, timeoutOrDefault(spec.Timeout))
	defer stop()
	a, err := runAgent(ctx, exe, agentRequest{Restore: &spec})
	if a.Restore == nil {
		return RestoreResult{}, err
	}
	return *a.Restore, err
}
