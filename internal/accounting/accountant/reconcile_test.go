package accountant

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// ledgerStore stores samples of a ledger, and compares neighbouring ones with an amount.
type ledgerStore struct {
	Store
	reporter ledgerReporter
	held     int64             // core-milliseconds between two samples
	complete accounting.Millis // the feeds are
}

// ledgerReporter is what ledgerStore has.
type ledgerReporter struct {
	accounting.Reporter
	samples  []accounting.LedgerSample
	list     []accounting.Reconciliation
	compared accounting.Millis
}

func (s *ledgerStore) Reporter(context.Context) accounting.Reporter { return &s.reporter }

func (s *ledgerStore) AddLedgerSample(_ context.Context, sample *accounting.LedgerSample) error {
	s.reporter.samples = append(s.reporter.samples, *sample)
	return nil
}

func (s *ledgerStore) Reconcile(_ context.Context, at accounting.Millis, running []accounting.RunningAttempt,
	now accounting.Millis) (n int, err error) {
	r := &s.reporter
	if s.complete < at {
		return 0, nil
	}
	if at > now || len(running) != 1 {
		return 0, errors.New("attempts of another time")
	}
	for len(r.samples) > 1 && r.samples[1].At <= at {
		from, to := r.samples[0], r.samples[1]
		for who, rise := range accounting.LedgerIncrease(&from, &to) {
			r.list = append(r.list, accounting.Reconciliation{Submitter: who, Ledger: rise, Held: s.held,
				Range: accounting.TimeRange{From: from.At, To: to.At}})
		}
		r.samples, r.compared = r.samples[1:], to.At
		n++
	}
	return n, nil
}

func (r *ledgerReporter) LedgerStatus() (s accounting.LedgerStatus, err error) {
	if s.Samples, s.Compared = len(r.samples), r.compared; s.Samples > 0 {
		s.First, s.Last = r.samples[0].At, r.samples[s.Samples-1].At
	}
	if s.Samples > 1 {
		s.Next = r.samples[1].At
	}
	return s, nil
}

func (r *ledgerReporter) Reconciliations(t accounting.TimeRange) (list []accounting.Reconciliation, err error) {
	for _, c := range r.list {
		if c.Range.From >= t.From && c.Range.From < t.To {
			list = append(list, c)
		}
	}
	return list, nil
}

// TestLedgerReconciler samples the ledger through a restart and a leader that is away. It
// computes what differs within a day.
func TestLedgerReconciler(t *testing.T) {
	store := &ledgerStore{held: 3600_000}
	hours, away, lists := 0.0, false, 0
	open := func() *ledgerReconciler {
		return &ledgerReconciler{store: store, log: slog.New(slog.DiscardHandler), every: time.Hour,
			shares: func(context.Context) ([]ledgerShare, error) {
				if away {
					return nil, roost.Unavailable
				}
				// half of it in another pool, whose users are in no feed of this one
				return []ledgerShare{{User: "ann", Group: "physics", CoreHours: hours / 2, Elsewhere: hours / 2},
					{User: "bob@chem", Group: "peer:chem", CoreHours: 7 * hours}}, nil
			}, running: func(context.Context) ([]accounting.RunningAttempt, error) {
				if lists++; lists == 1 {
					return nil, roost.Unavailable
				}
				return make([]accounting.RunningAttempt, 1), nil
			}}
	}
	now := time.Now()
	l := open()
	step := func(after time.Duration, use float64) error {
		t.Helper()
		now, hours = now.Add(after), hours+use
		store.complete = accounting.MillisOf(now)
		return l.step(t.Context(), now)
	}
	ratio := func(want float64) {
		t.Helper()
		if got := l.ratio.Load(); want < 0 != (got == nil) || got != nil && math.Abs(*got-want) > 1e-9 {
			t.Errorf("at %v: the ratio is %v, want %v", now, got, want)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(step(0, 0))
	must(step(59*time.Minute, 0.5)) // it is not due
	away = true
	if err := step(time.Minute, 0.5); !errors.Is(err, roost.Unavailable) || len(store.reporter.samples) != 1 {
		t.Errorf("got %v and %d samples", err, len(store.reporter.samples))
	}
	away = false
	must(step(time.Second, 0))
	ratio(-1) // the sample is not old enough
	l = open()
	must(step(maxReconcileDelay-time.Second, 0))
	if len(store.reporter.samples) != 2 {
		t.Errorf("a restart takes a sample: there are %d", len(store.reporter.samples))
	}
	if err := step(time.Second, 0); !errors.Is(err, roost.Unavailable) {
		t.Errorf("a schedd that does not answer: got %v", err)
	}
	now, store.complete = now.Add(time.Second), store.complete-1
	if err := l.step(t.Context(), now); err != nil || lists != 2 {
		t.Errorf("a feed that is not complete: got %v and %d lists", err, lists)
	}
	ratio(-1)
	must(step(time.Second, 0))
	if lists != 2 {
		t.Errorf("attempts are listed %d times", lists)
	}
	ratio(0)
	store.held = 0 // the accounts lose an hour
	must(step(time.Hour, 1))
	must(step(maxReconcileDelay, 0))
	ratio(0.5)
	for range 25 { // and no other
		store.held = 3600_000
		must(step(time.Hour-maxReconcileDelay, 1))
		must(step(maxReconcileDelay, 0))
	}
	ratio(0)
	hours = math.NaN()
	if err := step(time.Hour, 0); !errors.Is(err, roost.Invalid) {
		t.Errorf("a ledger that makes no sense: got %v", err)
	}
}
