package store

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"

	"github.com/roost-batch/roost/internal/accounting"
)

const (
	insertComparison = `INSERT INTO ledger_comparison (start, until, owner, grp, ledger, held, made)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (start, owner, grp) DO UPDATE SET until = excluded.until, ledger = excluded.ledger, held = excluded.held,
 made = excluded.made`
	selectComparisons = `SELECT start, until, owner, grp, ledger, held, made FROM ledger_comparison
WHERE start >= $1 AND start < $2`
	deleteComparisons = `DELETE FROM ledger_comparison WHERE start < $1`
	comparedCounter   = "compared"
)

// comparisonAge is for how long comparisons are stored: each is a row for each submitter.
const comparisonAge = 400 * accounting.DayMillis

// Reconcile compares the accounts with the ledger between neighbouring samples, up to a
// time at which running ran. It returns how many of these times it compared. Feeds have
// an attempt when it has ended, and may be late: nothing is compared before all of them
// are complete up to that time, or it has passed by three days.
func (s *Store) Reconcile(ctx context.Context, at accounting.Millis, running []accounting.RunningAttempt,
	now accounting.Millis) (n int, err error) {
	if s.sources.watermark() < at && at+closeDelay > now {
		return 0, nil
	}
	times, err := ledgerTimes(ctx, s.engine.reader())
	if err != nil {
		return 0, fmt.Errorf("reconciliation: %w", s.engine.explain(err))
	}
	c := ledgerComparer{s, s.newRunningSet(running), now}
	for i := 1; i < len(times) && times[i] <= at; i++ {
		r := accounting.TimeRange{From: times[i-1], To: times[i]}
		if err := c.reconcile(ctx, r); err != nil {
			return n, fmt.Errorf("reconciliation from %s to %s: %w", r.From.Time(), r.To.Time(), s.engine.explain(err))
		}
		n++
	}
	return n, nil
}

// ledgerComparer compares the accounts of a store with the ledger.
type ledgerComparer struct {
	*Store
	running runningSet
	now     accounting.Millis
}

// reconcile compares the time between two samples, and removes the first of them.
func (s ledgerComparer) reconcile(ctx context.Context, r accounting.TimeRange) error {
	list, err := s.compareWithLedger(ctx, r)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	names := s.names.draft() // each of them is stored already, in a sample or by an attempt
	return s.inTx(ctx, func(tx *sql.Tx) error {
		for i := range list {
			c := &list[i]
			_, err := tx.ExecContext(ctx, insertComparison, int64(r.From), int64(r.To), names.id(ownerName, c.Owner),
				names.id(groupName, c.Group), c.Ledger, c.Held, int64(s.now))
			if err != nil {
				return err
			}
		}
		if _, err := tx.ExecContext(ctx, deleteLedgerSamples, int64(r.To)); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, deleteLedgerUses, int64(r.To)); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, deleteComparisons, int64(s.now-comparisonAge)); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, upsertCounter, comparedCounter, int64(r.To))
		return err
	})
}

// compareWithLedger compares each submitter that used something by the ledger or by the
// accounts. One whose use was reset within the range is left out.
func (s ledgerComparer) compareWithLedger(ctx context.Context, r accounting.TimeRange) (
	list []accounting.Reconciliation, err error) {
	from, err := s.ledgerSample(ctx, r.From)
	if err != nil {
		return nil, err
	}
	to, err := s.ledgerSample(ctx, r.To)
	if err != nil {
		return nil, err
	}
	held, err := s.sumHeldShares(ctx, r)
	if err != nil {
		return nil, err
	}
	rises := accounting.LedgerIncrease(&from, &to)
	for who := range held {
		rises[who] += 0 // also those that the ledger does not know
	}
	for who, rise := range rises {
		c := accounting.Reconciliation{Submitter: who, Range: r, Ledger: rise, Made: s.now,
			Held: int64(math.Round(min(held[who], maxLedgerUse)))}
		if c.Ledger > 0 || c.Ledger == 0 && c.Held != 0 {
			list = append(list, c)
		}
	}
	return list, nil
}

func (r reader) Reconciliations(t accounting.TimeRange) ([]accounting.Reconciliation, error) {
	var all []accounting.Reconciliation
	from, to := bounds(t)
	err := queryAll(r.ctx, r.store.engine.reader(), func(rows *sql.Rows) error {
		var c accounting.Reconciliation
		var owner, group int64
		err := rows.Scan(&c.Range.From, &c.Range.To, &owner, &group, &c.Ledger, &c.Held, &c.Made)
		c.Owner, c.Group = r.store.names.text(owner), r.store.names.text(group)
		all = append(all, c)
		return err
	}, selectComparisons, int64(from), int64(to))
	slices.SortFunc(all, accounting.Reconciliation.Compare)
	return all, r.store.engine.explain(err)
}

func (r reader) LedgerStatus() (status accounting.LedgerStatus, err error) {
	db := r.store.engine.reader()
	times, err := ledgerTimes(r.ctx, db)
	if err == nil {
		err = db.QueryRowContext(r.ctx, selectCounter, comparedCounter).Scan(&status.Compared)
	}
	if status.Samples = len(times); status.Samples > 0 {
		status.First, status.Last = times[0], times[len(times)-1]
	}
	if status.Samples > 1 {
		status.Next = times[1]
	}
	return status, r.store.engine.explain(err)
}
