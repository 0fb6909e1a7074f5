package web

import (
	"context"
	"encoding/json"
	"fmt"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/wire"
)

// Accounting answers a report with one line, whose texts the test chooses.
func (f *fakeSchedd) Accounting(r *wire.AccountingQuery, to grpc.ServerStreamingServer[wire.AccountingPiece]) error {
	if _, err := f.caller(to.Context()); err != nil {
		return err
	}
	q, err := query.Parse(r.GetQuery())
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.queries = append(f.queries, q)
	f.mu.Unlock()
	payer := query.Payer{Project: f.text}
	lines := map[string]any{
		query.Rates:       query.RateLine{ID: 1, Group: f.text, Rule: "sum", By: f.text},
		query.Adjustments: query.AdjustmentLine{ID: 1, Payer: payer, Month: 1, Amount: -12_500_000, Reason: f.text},
		query.Budgets:     query.BudgetLine{ID: 1, Payer: payer, By: f.text, Hard: true},
		query.Months:      query.MonthLine{Month: 1, By: f.text},
		query.Statements: query.StatementDocument{Payer: payer, Month: 1, Total: -12_000_000,
			Lines: []query.StatementLine{{User: f.text, Queue: f.text, Band: f.text, CoreHours: 1.5,
				Amount: 500_000}},
			Adjustments: []query.AdjustmentLine{{Amount: -12_500_000, Reason: f.text, By: f.text}}},
		query.Attempts: query.AttemptLine{Job: accounting.JobEntry{Owner: f.text, Name: f.text, Tasks: 1},
			Attempt: accounting.AttemptEntry{AttemptKey: accounting.AttemptKey{Attempt: 1}, Node: f.text,
				Started: 1_772_323_200_000, Ended: 1_772_323_260_000, Wall: 60_000, Cause: 1}},
		query.Jobs: accounting.JobEntry{Owner: f.text, Name: f.text, Tasks: 1, Submitted: 1_772_323_200_000},
		query.Machines: accounting.MachineEvent{Node: f.text, Time: 1_772_323_200_000, What: accounting.MachineDrained,
			Class: f.text, Capacity: roost.Resources{CPU: 4000, Memory: roost.GiB}},
		query.Ends:  accounting.EndLine{Owner: f.text, Count: 3},
		query.Usage: query.UsageLine{Owner: f.text, Amounts: accounting.Amounts{Ended: 1, HeldCPU: 7.2e6}},
	}
	line, known := lines[q.Report]
	if !known {
		return nil
	}
	text, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("line: %w", err)
	}
	return to.Send(&wire.AccountingPiece{Lines: append(text, '\n')})
}

// ChangeAccounts checks a change and answers with what it makes.
func (f *fakeSchedd) ChangeAccounts(ctx context.Context, r *wire.AccountingChange) (*wire.AccountingResult, error) {
	if _, err := f.caller(ctx); err != nil {
		return nil, err
	}
	c, err := query.ParseChange(r.GetChange())
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.changes = append(f.changes, c)
	f.mu.Unlock()
	made := map[string]any{"rate": c.Rate, "rerate": c.Rerate, "adjustment": c.Adjustment, "budget": c.Budget,
		"close": c.Close}[c.What()]
	text, err := json.Marshal(made)
	return &wire.AccountingResult{Document: text}, err
}
