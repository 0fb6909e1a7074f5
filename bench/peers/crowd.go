package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"

	"golang.org/x/sync/errgroup"
)

// hands are how many shells submit at once where there is no faster way.
const hands = 4

// crowd submits n jobs by commands in several shells at once.
func (a *agent) crowd(ctx context.Context, command string, n int) error {
	all, ctx := errgroup.WithContext(ctx)
	for i := range hands {
		share := (n + i) / hands
		all.Go(func() error {
			if _, err := a.do(ctx, "sh", "-c", repeated(command, share)); err != nil {
				return fmt.Errorf("submit %d jobs: %w", n, err)
			}
			return nil
		})
	}
	return all.Wait()
}

var dispatched = regexp.MustCompile(`PROF: job dispatching took ([0-9.]+) s`)

// dispatching adds up what Grid Engine's scheduler says of the time that it took to place jobs.
func dispatching(log string) (seconds float64) {
	for _, found := range dispatched.FindAllStringSubmatch(log, -1) {
		if s, err := strconv.ParseFloat(found[1], 64); err == nil {
			seconds += s
		}
	}
	return seconds
}
