package query

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// Change is a change of the accounts by an administrator. Exactly one of its members
// besides Request is set.
type Change struct {
	// identifies an adjustment: the same request again adds nothing
	Request    string          `json:"request,omitempty"`
	Rate       *RateLine       `json:"rate,omitempty"`
	Rerate     *Time           `json:"rerate,omitempty"` // what ended since then is charged again
	Adjustment *AdjustmentLine `json:"adjustment,omitempty"`
	Budget     *BudgetLine     `json:"budget,omitempty"`
	Close      *Month          `json:"close,omitempty"` // this month is closed
}

// ParseChange reads and checks a change.
func ParseChange(text []byte) (c Change, err error) {
	if len(text) > maxQuery {
		return c, fmt.Errorf("change: %w: it has %d bytes, %d at most", roost.Invalid, len(text), maxQuery)
	}
	if err := decode(text, &c); err != nil {
		return c, fmt.Errorf("change: %w", err)
	}
	n := 0
	for _, is := range []bool{c.Rate != nil, c.Rerate != nil, c.Adjustment != nil, c.Budget != nil, c.Close != nil} {
		if is {
			n++
		}
	}
	switch {
	case n != 1:
		return c, fmt.Errorf("change: %w: it has %d members, and needs one", roost.Invalid, n)
	case c.Rate != nil:
		_, err = c.Rate.Rate()
	case c.Adjustment != nil:
		err = c.Adjustment.check()
	case c.Budget != nil:
		err = c.Budget.check()
	}
	return c, err
}

// What returns what changes, in one word.
func (c *Change) What() string {
	switch {
	case c.Rate != nil:
		return "rate"
	case c.Rerate != nil:
		return "rerate"
	case c.Adjustment != nil:
		return "adjustment"
	case c.Budget != nil:
		return "budget"
	}
	return "close"
}

// maxReasonBytes bounds the reason of an adjustment.
const maxReasonBytes = 1000

// maxAmount bounds an adjustment or a budget, so that sums do not overflow.
const maxAmount = Units(1_000_000_000 * accounting.Unit)

func (a *AdjustmentLine) check() error {
	fail := func(text string) error { return fmt.Errorf("adjustment: %w: %s", roost.Invalid, text) }
	switch {
	case a.Reason == "" || len(a.Reason) > maxReasonBytes:
		return fail(fmt.Sprintf("say why, in at most %d bytes", maxReasonBytes))
	case a.Amount == 0 || a.Amount > maxAmount || a.Amount < -maxAmount:
		return fail(fmt.Sprintf("the amount is not 0, and at most %s either way", maxAmount))
	case a.Month <= 0:
		return fail("name the month of the statement, as 2026-03")
	}
	return a.Payer.Check()
}

// Adjustment returns the adjustment of a change.
func (a *AdjustmentLine) Adjustment(by string, now accounting.Millis) accounting.Adjustment {
	return accounting.Adjustment{Payer: a.Payer.payer(), Month: accounting.Month(a.Month),
		Amount: accounting.MicroUnits(a.Amount), Reason: a.Reason, By: by, Set: now}
}

// NoBudget is the amount of a budget that takes an earlier one away.
const NoBudget = Units(accounting.NoBudget)

func (b *BudgetLine) check() error {
	fail := func(text string) error { return fmt.Errorf("budget: %w: %s", roost.Invalid, text) }
	switch {
	case b.From <= 0 || b.To < b.From:
		return fail("name its first and its last month, as 2026-01 and 2026-12")
	case b.To-b.From >= maxMonths:
		return fail(fmt.Sprintf("it has at most %d months", maxMonths))
	case b.Amount < 0 || b.Amount > maxAmount && b.Amount != NoBudget:
		return fail(fmt.Sprintf("the amount is from 0 to %s", maxAmount))
	}
	return b.Payer.Check()
}

// Budget returns the budget of a change.
func (b *BudgetLine) Budget(by string, now accounting.Millis) accounting.Budget {
	return accounting.Budget{Payer: b.Payer.payer(), From: accounting.Month(b.From), To: accounting.Month(b.To),
		Amount: accounting.MicroUnits(b.Amount), Hard: b.Hard, By: by, Set: now}
}
