package criu

import "context"

// restoreByAgent brings a task back, by an agent, as the starter does. Its first process
// falls to the caller's process if that is a subreaper (prctl(2)), or else to whoever
// reaps orphans. A *Failure says what is wrong with image or machine.
func restoreByAgent(ctx context.Context, exe string, spec RestoreSpec) (RestoreResult, error) {
	ctx, stop := context.WithTimeout(ctx, timeoutOrDefault(spec.Timeout))
	defer stop()
	a, err := runAgent(ctx, exe, agentRequest{Restore: &spec})
	if a.Restore == nil {
		return RestoreResult{}, err
	}
	return *a.Restore, err
}
