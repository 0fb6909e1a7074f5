package accountant

import (
	"context"
	"log/slog"
	"time"

	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/metrics"
)

// upkeep sums up hours, charges attempts, closes months, and removes what is too old.
type upkeep struct {
	store   Store
	log     *slog.Logger
	budgets *spentBudgets
	metrics *metrics.Accountant
}

// How often that is done, and how much of it at once.
const (
	rollInterval  = 10 * time.Second
	closeInterval = time.Hour
	rollHours     = 200
	chargeJobs    = 5000
)

// The age at which windows of usage and actions on jobs are removed. Jobs, attempts and
// sums stay.
const (
	usageAge  = 30 * accounting.DayMillis
	actionAge = 90 * accounting.DayMillis
)

// run does so until ctx ends. What fails is tried again the next time.
func (u *upkeep) run(ctx context.Context) {
	closedAt := time.Time{}
	lastError := ""
	for ctx.Err() == nil {
		busy, err := u.roll(ctx)
		if err == nil {
			err = u.budgets.update(u.store.Reporter(ctx), millisNow(), u.log)
		}
		if err == nil && time.Since(closedAt) >= closeInterval {
			closedAt = time.Now()
			var months []accounting.Month
			if months, err = u.store.CloseMonths(ctx, millisNow()); len(months) > 0 {
				u.log.Info("months are closed", "months", months)
			}
			u.verify(ctx)
			if err == nil {
				err = u.store.Purge(ctx, millisNow()-usageAge, millisNow()-actionAge)
			}
		}
		text := ""
		if err != nil && ctx.Err() == nil {
			if text = err.Error(); text != lastError {
				u.log.Error("the accounts cannot be summed up", "error", err)
			}
		}
		if lastError = text; !busy || err != nil {
			sleep(ctx, rollInterval)
		}
	}
}

// verify logs each time what is damaged: only a copy of the store has it.
func (u *upkeep) verify(ctx context.Context) {
	if err := u.store.Verify(ctx); err != nil && ctx.Err() == nil {
		u.log.Error("rates, adjustments, budgets and closed months cannot be verified", "error", err)
	}
}

// roll does a part of what there is to do. busy reports whether there may be more.
func (u *upkeep) roll(ctx context.Context) (busy bool, err error) {
	began := u.metrics.RollupTime.Now()
	hours, err := u.store.Roll(ctx, millisNow(), rollHours)
	if err != nil {
		return false, err
	}
	if hours > 0 {
		u.metrics.RollupTime.ObserveSince(began)
	}
	charged, err := u.store.Charge(ctx, millisNow(), chargeJobs)
	return hours >= rollHours || charged >= chargeJobs, err
}

func millisNow() accounting.Millis { return accounting.Millis(time.Now().UnixMilli()) }
