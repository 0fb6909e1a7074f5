package accountant

import (
	"context"
	"encoding/json"

	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/query"
)

// apply makes a change for somebody who may. It returns the document of what was made.
func (a *accountant) apply(ctx context.Context, c *query.Change, who string) ([]byte, error) {
	now := millisNow()
	switch {
	case c.Rate != nil:
		c.Rate.By, c.Rate.Set = who, query.Time(now)
		if c.Rate.From == 0 {
			c.Rate.From = query.Time(now)
		}
		r, err := c.Rate.Rate()
		if err == nil {
			err = a.store.AddRate(ctx, r)
		}
		return documentOf(c.Rate, err)
	case c.Rerate != nil:
		return documentOf(c.Rerate, a.store.Rerate(ctx, accounting.Millis(*c.Rerate)))
	case c.Adjustment != nil:
		c.Adjustment.By, c.Adjustment.Set = who, query.Time(now)
		return documentOf(c.Adjustment, a.store.Adjust(ctx, c.Request, c.Adjustment.Adjustment(who, now)))
	case c.Budget != nil:
		c.Budget.By, c.Budget.Set = who, query.Time(now)
		err := a.store.SetBudget(ctx, c.Budget.Budget(who, now))
		if err == nil {
			err = a.budgets.update(a.store.Reporter(ctx), now, a.log)
		}
		return documentOf(c.Budget, err)
	}
	return documentOf(c.Close, a.store.CloseMonth(ctx, accounting.Month(*c.Close), who, now))
}

func documentOf(v any, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return json.Marshal(v)
}
