package store

import (
	"errors"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// statementSum returns the sum of all statements of a month, before grants.
func statementSum(t *testing.T, r accounting.Reporter, m accounting.Month) (sum accounting.MicroUnits) {
	t.Helper()
	payers, err := r.Payers(m)
	must(t, err)
	for _, p := range payers {
		st, err := r.Statement(p, m)
		must(t, err)
		total := -st.Grant
		for _, l := range st.Lines {
			total += l.Amount
		}
		for _, a := range st.Adjustments {
			total += a.Amount
		}
		if total != st.Total {
			t.Errorf("%+v: the lines sum to %d, the total is %d", p, total, st.Total)
		}
		sum += st.Total + st.Grant
	}
	return sum
}

// chargesOf returns what the rates make of entries, by month.
func chargesOf(feed []accounting.FeedEntry, rates ...accounting.Rate) map[accounting.Month]accounting.MicroUnits {
	attempts, jobs := finals(feed)
	table := accounting.NewRateTable(rates)
	sums := map[accounting.Month]accounting.MicroUnits{}
	for _, a := range attempts {
		job := jobs[a.JobKey]
		for _, c := range table.Charges(&a, &job) {
			sums[c.Month] += c.Amount
		}
	}
	return sums
}

// TestStatements goes through the life of two months: charges, another rate, a close,
// late news and adjustments.
func TestStatements(t *testing.T) {
	feed := testFeed(1, 60)
	october := accounting.MonthOf(workloadStart)
	rest := len(feed) * 4 / 5
	onEngines(t, func(t *testing.T, options func() Options) {
		s, ctx := openStore(t, options()), t.Context()
		r := s.Reporter(ctx)
		must(t, s.AddRate(ctx, testRate()))
		if err := s.AddRate(ctx, testRate()); !errors.Is(err, roost.Conflict) {
			t.Errorf("the same rate again: got %v", err)
		}
		ingestAll(t, s, 1, feed[:rest], 200)
		compute(t, s, workloadEnd)
		want := chargesOf(feed[:rest], testRate())
		if got := statementSum(t, r, october); got != want[october] || got == 0 {
			t.Errorf("October: got %d, want %d", got, want[october])
		}

		// Another rate from the same time on: all is charged again, once.
		dear := testRate()
		dear.From, dear.CoreHour = 1, 3_000_000
		must(t, s.AddRate(ctx, dear))
		for range 2 {
			must(t, s.Rerate(ctx, 0))
			compute(t, s, workloadEnd)
		}
		want = chargesOf(feed[:rest], testRate(), dear)
		for m := october; m <= october+1; m++ {
			if got := statementSum(t, r, m); got != want[m] {
				t.Errorf("%s by the new rate: got %d, want %d", m, got, want[m])
			}
		}

		// Nothing changes a closed month.
		closeWhenComplete(t, s, october)
		before := statementSum(t, r, october)
		ingestAll(t, s, 1, feed[rest:], 200)
		compute(t, s, workloadEnd)
		all := chargesOf(feed, testRate(), dear)
		if got := statementSum(t, r, october); got != before {
			t.Errorf("the closed month: got %d, want %d", got, before)
		}
		checkGrant(t, s, october)
		if got := statementSum(t, r, october+1); got != all[october]-before+all[october+1] {
			t.Errorf("November with late news: got %d, want %d", got, all[october]-before+all[october+1])
		}
		checkAdjustments(t, s, october)
	})
}

// checkGrant holds that a later rate does not change the grant of a closed month. It may
// begin as early as it likes.
func checkGrant(t *testing.T, s *Store, closed accounting.Month) {
	t.Helper()
	r, payer := s.Reporter(t.Context()), accounting.Payer{Project: "p1"}
	before, err := r.Statement(payer, closed)
	must(t, err)
	late := testRate()
	late.From, late.Group, late.MonthlyGrant = 2, "nobody", 5_000_000
	must(t, s.AddRate(t.Context(), late))
	late.Group, late.CoreHour, late.MonthlyGrant = "", 3_000_000, 7000
	must(t, s.AddRate(t.Context(), late))
	after, err := r.Statement(payer, closed)
	must(t, err)
	if before.Closed == 0 || after.Grant != before.Grant || after.Total != before.Total {
		t.Errorf("got %+v, want %+v", after, before)
	}
	if open, err := r.Statement(payer, closed+1); err != nil || open.Grant != 7000 {
		t.Errorf("the open month: got a grant of %d, %v", open.Grant, err)
	}
}

// closeWhenComplete closes a month as soon as its source has passed it by three days.
func closeWhenComplete(t *testing.T, s *Store, m accounting.Month) {
	t.Helper()
	now := m.End() + 100*accounting.HourMillis
	for _, until := range []accounting.Millis{m.End() + 71*accounting.HourMillis, m.End() + 72*accounting.HourMillis} {
		must(t, s.Advance(t.Context(), testSource(1), testHost(1), until))
		closed, err := s.CloseMonths(t.Context(), now)
		must(t, err)
		if complete := until-m.End() == 72*accounting.HourMillis; (len(closed) == 1) != complete {
			t.Fatalf("complete until %s: closed %v", until.Time(), closed)
		}
	}
	if err := s.CloseMonth(t.Context(), m, "root", now); !errors.Is(err, roost.Finished) {
		t.Errorf("closed twice: got %v", err)
	}
	if err := s.CloseMonth(t.Context(), m+1, "root", now); !errors.Is(err, roost.Conflict) {
		t.Errorf("closed before its end: got %v", err)
	}
}

func checkAdjustments(t *testing.T, s *Store, closed accounting.Month) {
	t.Helper()
	ctx, r := t.Context(), s.Reporter(t.Context())
	payer := accounting.Payer{Project: "p1"}
	a := accounting.Adjustment{Payer: payer, Month: closed + 1, Amount: -5000, Reason: "a broken node", By: "root"}
	before := statementSum(t, r, closed+1)
	for range 2 {
		must(t, s.Adjust(ctx, "request 1", a))
	}
	if got := statementSum(t, r, closed+1); got != before-5000 {
		t.Errorf("adjusted twice by one request: got %d, want %d", got, before-5000)
	}
	a.Month = closed
	if err := s.Adjust(ctx, "request 2", a); !errors.Is(err, roost.Finished) {
		t.Errorf("adjustment of a closed month: got %v", err)
	}
	a.Payer.Owner = "ann"
	if err := s.Adjust(ctx, "request 3", a); !errors.Is(err, roost.Invalid) {
		t.Errorf("two payers: got %v", err)
	}
	st, err := r.Statement(payer, closed+1)
	must(t, err)
	if _, err := r.Budget(payer, (closed + 1).Start()); !errors.Is(err, roost.NotFound) {
		t.Errorf("no budget: got %v", err)
	}
	spent := st.Total + st.Grant
	b := accounting.Budget{Payer: payer, From: closed + 1, To: closed + 3, Amount: spent + 1, By: "root"}
	must(t, s.SetBudget(ctx, b))
	status, err := r.Budget(payer, (closed + 2).Start())
	must(t, err)
	if status.Spent != spent || !status.Warns() || status.Refuses() {
		t.Errorf("got %+v, want %d", status, spent)
	}
	b.Amount, b.Hard = spent, true
	must(t, s.SetBudget(ctx, b))
	if status, err = r.Budget(payer, (closed + 2).Start()); err != nil || !status.Refuses() {
		t.Errorf("got %+v, %v", status, err)
	}
}

// TestDropMonth holds that roll-ups and charges survive the jobs that they were made of.
func TestDropMonth(t *testing.T) {
	october := accounting.MonthOf(workloadStart)
	onEngines(t, func(t *testing.T, options func() Options) {
		s, ctx := openStore(t, options()), t.Context()
		must(t, s.AddRate(ctx, testRate()))
		feed := testFeed(1, 40)
		ingestAll(t, s, 1, feed, 500)
		compute(t, s, workloadEnd)
		if err := s.DropMonth(ctx, october); !errors.Is(err, roost.Conflict) {
			t.Errorf("an open month: got %v", err)
		}
		closeWhenComplete(t, s, october)
		query := accounting.UsageQuery{Range: october.Range()}
		before, err := s.Reporter(ctx).UsageLines(query)
		must(t, err)
		charged := statementSum(t, s.Reporter(ctx), october)
		must(t, s.DropMonth(ctx, october))
		must(t, s.Rerate(ctx, 0))
		must(t, s.IngestMachines(ctx, testMachines()))
		compute(t, s, workloadEnd)
		after, err := s.Reporter(ctx).UsageLines(query)
		must(t, err)
		if len(after) != 1 || after[0] != before[0] {
			t.Errorf("got %+v, want %+v", after, before)
		}
		if got := statementSum(t, s.Reporter(ctx), october); got != charged {
			t.Errorf("charged %d, want %d", got, charged)
		}
		for _, j := range collect(t, s.Reader(ctx).Jobs(accounting.Selection{By: accounting.BySubmit})) {
			if j.Month == october {
				t.Fatalf("got %+v", j)
			}
		}
	})
}
