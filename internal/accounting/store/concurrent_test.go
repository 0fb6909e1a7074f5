package store

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/roost-batch/roost/internal/accounting"
)

// TestConcurrentUse stores two feeds at once, while roll-ups, charges and readers run.
// The marks of an hour that changes during its roll-up must remain.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	const jobs = 50
	want := cleanDigest(t, Options{Directory: t.TempDir()}, jobs)
	onEngines(t, func(t *testing.T, options func() Options) {
		s := openStore(t, options())
		must(t, s.AddRate(t.Context(), testRate()))
		must(t, s.IngestMachines(t.Context(), testMachines()))
		ctx, stop := context.WithCancel(t.Context())
		var writers, others sync.WaitGroup
		for source := byte(1); source <= 2; source++ {
			writers.Go(func() {
				for part := range slices.Chunk(testFeed(source, jobs), 11) {
					if err := s.Ingest(ctx, testSource(source), testHost(source), part); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		repeat := func(f func() error) {
			others.Go(func() {
				for ctx.Err() == nil {
					if err := f(); err != nil && !errors.Is(err, context.Canceled) && ctx.Err() == nil {
						t.Error(err)
						return
					}
				}
			})
		}
		repeat(func() error { _, err := s.Roll(ctx, workloadEnd, 30); return err })
		repeat(func() error { _, err := s.Charge(ctx, workloadEnd, 50); return err })
		repeat(func() error {
			for j, err := range s.Reader(ctx).Jobs(accounting.Selection{By: accounting.BySubmit}) {
				if err != nil {
					return err
				}
				for _, err := range s.Reader(ctx).JobAttempts(j.JobKey) {
					if err != nil {
						return err
					}
				}
			}
			return nil
		})
		writers.Wait()
		stop()
		others.Wait()
		compute(t, s, workloadEnd)
		equalDigests(t, digest(t, s), want)
	})
}
