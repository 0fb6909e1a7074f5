package criu

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// restoreByAgent restores a task by an agent, as the starter does. Its first process
// becomes a child of the caller's process if that is a subreaper (prctl(2)), else of the
// process that reaps orphans. A *CheckpointError describes a fault of image or machine.
func restoreByAgent(ctx context.Context, exe string, spec RestoreSpec) (RestoreResult, error) {
	ctx, stop := context.WithTimeout(ctx, restoreTimeout(spec.Dir))
	defer stop()
	a, err := runAgent(ctx, exe, agentRequest{Restore: &spec})
	if a.Restore == nil {
		return RestoreResult{}, err
	}
	return *a.Restore, err
}

// TestRestoreTimeout checks that a large image gets the time that it takes to read it.
func TestRestoreTimeout(t *testing.T) {
	dir := t.TempDir()
	if got := restoreTimeout(dir); got != restoreTime {
		t.Errorf("an empty image: %v, want %v", got, restoreTime)
	}
	path := filepath.Join(dir, "pages-1.img")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 100*restoreRate)); err != nil {
		t.Fatal(err)
	}
	if got, want := restoreTimeout(dir), restoreTime+100*time.Second; got != want {
		t.Errorf("100 seconds' reading: %v, want %v", got, want)
	}
}
