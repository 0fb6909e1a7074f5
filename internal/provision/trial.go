package provision

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/provision/driver"
	"github.com/roost-batch/roost/internal/provision/plan"
	"github.com/roost-batch/roost/internal/provision/provider"
)

// trialTimeout bounds a trial submit, with all its programs.
const trialTimeout = 3 * time.Minute

// TrySubmit submits a job at a provider that must not start, and cancels it. Its error
// has the own words of the outer system.
func TrySubmit(s *provider.Settings) error {
	ctx, cancel := context.WithTimeout(context.Background(), trialTimeout)
	defer cancel()
	system, err := driver.New(s)
	if err != nil {
		return err
	}
	w := &providerWorker{settings: *s, system: system}
	if err := w.resolveDir(ctx); err != nil {
		return fmt.Errorf("provider %s: its directory: %w", s.Name, err)
	}
	key := newKey()
	job := w.job(&plan.Allocation{Key: key, Provider: s.Name, Nodes: 1, Walltime: s.Walltime}, nil)
	job.Script, job.IsHeld = "#!/bin/sh\nexit 0\n", system.CanHold()
	id, err := system.Submit(ctx, job)
	if errors.Is(err, roost.Unavailable) { // it may be there all the same
		if found, findErr := system.Find(ctx, key); findErr == nil {
			id = found
		}
	}
	if id != "" {
		if cancelErr := system.Cancel(ctx, []string{id}); cancelErr != nil {
			return fmt.Errorf("provider %s: the trial job %s was taken, and cannot be cancelled: cancel it "+
				"yourself: %w", s.Name, id, cancelErr)
		}
	}
	shell := driver.Shell{Via: s.Via}
	shell.RemoveFiles(ctx, w.dir, allocationFiles(key)...)
	if err != nil {
		if !errors.Is(err, roost.Unavailable) {
			err = fmt.Errorf("%w: %w", roost.BadConfig, err)
		}
		return fmt.Errorf("provider %s: the outer system does not take its jobs: %w", s.Name, err)
	}
	return nil
}
