package accountant

import (
	"context"
	"time"

	"github.com/roost-batch/roost/internal/metrics"
)

// snapshotPeriod is how often the gauges are looked up while somebody reads them.
const snapshotPeriod = 2 * time.Second

// runMetrics makes snapshots for readers of the metrics until ctx ends.
func (a *accountant) runMetrics(ctx context.Context) {
	a.metrics.Snapshots.Run(ctx, snapshotPeriod, func() metrics.AccountantSnapshot { return a.snapshot(ctx) })
}

// snapshot returns what the metrics say of the feeds and of the store.
func (a *accountant) snapshot(ctx context.Context) metrics.AccountantSnapshot {
	s := metrics.AccountantSnapshot{Lag: map[string]time.Duration{}}
	a.schedds.addLags(&s, time.Now())
	s.LedgerDifference = a.ledger.ratio.Load()
	var err error
	if s.DirtyHours, err = a.store.DirtyHours(ctx); err == nil {
		s.Bytes, err = a.store.Size(ctx)
	}
	if err != nil && ctx.Err() == nil {
		a.log.Warn("the metrics lack what the store says", "error", err)
	}
	return s
}

// addLags adds how long ago all of each feed was stored, and which feeds have gaps.
func (s *scheddSet) addLags(to *metrics.AccountantSnapshot, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for host, f := range s.all {
		to.Lag[host] = max(now.Sub(time.UnixMilli(f.state.complete.Load())), 0)
		if f.state.gapOpen.Load() {
			to.Gaps++
		}
	}
}
