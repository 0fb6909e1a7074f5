package view

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/wire"
)

// ChangedAccounts is the document of a change of the accounts, as the commands print it.
// One member has what was made.
type ChangedAccounts struct {
	Version    int                   `json:"v"`
	Rate       *query.RateLine       `json:"rate,omitempty"`
	Recharge   *query.Time           `json:"recharge,omitempty"`
	Adjustment *query.AdjustmentLine `json:"adjustment,omitempty"`
	Budget     *query.BudgetLine     `json:"budget,omitempty"`
	Closed     *query.Month          `json:"closed,omitempty"`
}

// changeAccounts has the accountant make a change. Who may do that, it decides. into is
// the member of the answer that gets what was made.
func changeAccounts(c *route.Call, change query.Change, answer *ChangedAccounts, into any) error {
	text, err := json.Marshal(&change)
	if err != nil {
		return err
	}
	c.Note("change", json.RawMessage(text))
	err = ask(c, func(ctx context.Context, s wire.ScheddClient) error {
		result, err := s.ChangeAccounts(ctx, &wire.AccountingChange{Change: text})
		if err != nil {
			return err
		}
		if err := json.Unmarshal(result.GetDocument(), into); err != nil {
			return fmt.Errorf("%w: the answer of the accountant cannot be read: %w", roost.Internal, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	answer.Version = document.Version
	return c.WriteJSON(http.StatusOK, answer)
}

// SetRate adds a rate, as roost rate set. The same again changes nothing that is charged.
func SetRate(c *route.Call) error {
	var line query.RateLine
	if err := c.Decode(&line, nil); err != nil {
		return err
	}
	if _, err := line.Rate(); err != nil {
		return err
	}
	answer := &ChangedAccounts{}
	return changeAccounts(c, query.Change{Rate: &line}, answer, &answer.Rate)
}

// RechargeRequest says since when what has ended is charged again.
type RechargeRequest struct {
	From query.Time `json:"from"`
}

// Recharge charges again what ended since a time, as roost rate recharge.
func Recharge(c *route.Call) error {
	var body RechargeRequest
	if err := c.Decode(&body, nil); err != nil {
		return err
	}
	if body.From <= 0 {
		return fmt.Errorf("from: %w: say since when, as 2026-01-01T00:00:00Z", roost.Invalid)
	}
	answer := &ChangedAccounts{}
	return changeAccounts(c, query.Change{Rerate: &body.From}, answer, &answer.Recharge)
}

// AddAdjustment adds to the statement of a payer, as roost adjustment add. The header
// Idempotency-Key identifies it: the same key again adds nothing.
func AddAdjustment(c *route.Call) error {
	key := c.Request.Header.Get("Idempotency-Key")
	if len(key) > maxKey || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("Idempotency-Key: %w: it has at most %d printable characters", roost.Invalid, maxKey)
	}
	if key == "" {
		key = rand.Text()
	}
	var line query.AdjustmentLine
	if err := c.Decode(&line, nil); err != nil {
		return err
	}
	if line.Month == 0 {
		line.Month = query.Month(thisMonth())
	}
	answer := &ChangedAccounts{}
	return changeAccounts(c, query.Change{Request: key, Adjustment: &line}, answer, &answer.Adjustment)
}

// SetBudget sets how much a payer may spend, as roost budget set. Of the budgets of a
// payer the last one counts, so that the same again changes nothing.
func SetBudget(c *route.Call) error {
	var line query.BudgetLine
	if err := c.Decode(&line, nil); err != nil {
		return err
	}
	answer := &ChangedAccounts{}
	return changeAccounts(c, query.Change{Budget: &line}, answer, &answer.Budget)
}

// RemoveBudget takes the budget of a payer away, as roost budget set --amount none.
func RemoveBudget(c *route.Call) error {
	payer, err := payerOf(c)
	if err == nil && payer == nil {
		err = fmt.Errorf("budget: %w: say whose, as project=NAME, group=NAME or user=NAME", roost.Invalid)
	}
	if err != nil {
		return err
	}
	first, err := monthOf(c, "first", thisMonth())
	if err != nil {
		return err
	}
	last, err := monthOf(c, "last", first)
	if err != nil {
		return err
	}
	answer := &ChangedAccounts{}
	return changeAccounts(c, query.Change{Budget: &query.BudgetLine{Payer: *payer, From: query.Month(first),
		To: query.Month(last), Amount: query.NoBudget}}, answer, &answer.Budget)
}

// CloseMonth closes a month before its time, as roost statement close.
func CloseMonth(c *route.Call) error {
	m, err := accounting.ParseMonth(c.PathValue("month"))
	if err != nil {
		return err
	}
	month, answer := query.Month(m), &ChangedAccounts{}
	return changeAccounts(c, query.Change{Close: &month}, answer, &answer.Closed)
}
