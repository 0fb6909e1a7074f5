package store

import (
	"testing"

	"github.com/roost-batch/roost/internal/accounting"
)

// TestAccountLists lists rates, budgets, adjustments and months as they were set.
func TestAccountLists(t *testing.T) {
	october := accounting.MonthOf(workloadStart)
	onEngines(t, func(t *testing.T, options func() Options) {
		s, ctx := openStore(t, options()), t.Context()
		r := s.Reporter(ctx)
		must(t, s.AddRate(ctx, testRate()))
		ingestAll(t, s, 1, testFeed(1, 20), 200)
		compute(t, s, workloadEnd)
		payers, err := r.Payers(october)
		must(t, err)
		ocean := accounting.Payer{Project: "ocean'; DROP TABLE budget; --"}
		for _, b := range []accounting.Budget{
			{Payer: payers[0], From: october, To: october, Amount: 1, Hard: true, By: "root"},
			{Payer: ocean, From: october, To: october + 2, Amount: 10 * accounting.Unit, By: "root"},
			{Payer: accounting.Payer{Owner: "gone"}, From: october, To: october, Amount: 1, By: "root"},
			{Payer: accounting.Payer{Owner: "gone"}, From: october, To: october, Amount: accounting.NoBudget,
				By: "root"},
		} {
			must(t, s.SetBudget(ctx, b))
		}
		must(t, s.Adjust(ctx, "1", accounting.Adjustment{Payer: ocean, Month: october, Amount: 9 * accounting.Unit,
			Reason: "by hand", By: "root", Set: 1}))
		budgets, err := r.Budgets(october.Start())
		must(t, err)
		if len(budgets) != 2 {
			t.Fatalf("got %d budgets: %+v", len(budgets), budgets)
		}
		for _, b := range budgets {
			if b.Payer == ocean && (b.Spent != 9*accounting.Unit || !b.Warns() || b.Refuses()) ||
				b.Payer == payers[0] && (b.Spent == 0 || !b.Refuses()) {
				t.Errorf("got %+v", b)
			}
		}
		if later, err := r.Budgets((october + 1).Start()); err != nil || len(later) != 1 || later[0].Payer != ocean {
			t.Errorf("a month later: got %+v, %v", later, err)
		}
		if list, err := r.Adjustments(october, october); err != nil || len(list) != 1 || list[0].Payer != ocean {
			t.Errorf("adjustments: got %+v, %v", list, err)
		}
		if list, err := r.Adjustments(october+1, october+9); err != nil || len(list) != 0 {
			t.Errorf("adjustments later: got %+v, %v", list, err)
		}
		if rates, err := r.Rates(); err != nil || len(rates) != 1 {
			t.Errorf("rates: got %+v, %v", rates, err)
		}
		must(t, s.CloseMonth(ctx, october, "root", (october+1).Start()))
		months, err := r.Months()
		must(t, err)
		last := months[len(months)-1]
		if want := statementSum(t, r, october); last.Month != october || last.By != "root" || last.Closed == 0 ||
			last.Charges == 0 || last.Charges+9*accounting.Unit != want {
			t.Errorf("months: got %+v, want charges of %d", months, want-9*accounting.Unit)
		}
	})
}
