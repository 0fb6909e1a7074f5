package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"

	"golang.org/x/sync/errgroup"
)

// submitShells is how many shells submit concurrently where there is no faster way.
const submitShells = 4

// submitInParallel submits n jobs by commands in several shells at once.
func (a *systemAgent) submitInParallel(ctx context.Context, command string, n int) error {
	all, ctx := errgroup.WithContext(ctx)
	for i := range submitShells {
		share := (n + i) / submitShells
		all.Go(func() error {
			if _, err := a.runAsUser(ctx, "sh", "-c", loopScript(command, share)); err != nil {
				return fmt.Errorf("submit %d jobs: %w", n, err)
			}
			return nil
		})
	}
	return all.Wait()
}

var dispatchedLine = regexp.MustCompile(`PROF: job dispatching took ([0-9.]+) s`)

// dispatchTime sums the times that Grid Engine's scheduler logs for placing jobs.
func dispatchTime(log string) (seconds float64) {
	for _, found := range dispatchedLine.FindAllStringSubmatch(log, -1) {
		if s, err := strconv.ParseFloat(found[1], 64); err == nil {
			seconds += s
		}
	}
	return seconds
}
