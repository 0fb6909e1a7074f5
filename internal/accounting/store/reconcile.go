package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/roost-batch/roost/internal/accounting"
)

const (
	selectDayCPU = `SELECT CAST(coalesce(sum(held_cpu), 0) AS bigint), CAST(coalesce(sum(charged_cpu), 0) AS bigint)
FROM rollup WHERE step = 2 AND whole = 0 AND at = $1`
	upsertReconciliation = `INSERT INTO reconciliation (day, ledger, held, charged, made) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (day) DO UPDATE SET ledger = excluded.ledger, held = excluded.held, charged = excluded.charged,
 made = excluded.made`
	selectReconciliations = `SELECT day, ledger, held, charged, made FROM reconciliation WHERE day >= $1 AND day < $2
ORDER BY day`
)

// Reconcile compares what attempts held on a day with what the negotiator's ledger says,
// in core-milliseconds, and stores both.
func (s *Store) Reconcile(ctx context.Context, day accounting.Millis, ledger int64,
	now accounting.Millis) (accounting.Reconciliation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := accounting.Reconciliation{Day: day.Day(), Ledger: ledger, Made: now}
	err := s.inTx(ctx, func(tx *sql.Tx) error {
		if err := tx.QueryRowContext(ctx, selectDayCPU, int64(r.Day)).Scan(&r.Held, &r.Charged); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, upsertReconciliation, int64(r.Day), r.Ledger, r.Held, r.Charged, int64(now))
		return err
	})
	if err != nil {
		return r, fmt.Errorf("reconciliation: %w", err)
	}
	return r, nil
}

func (r reader) Reconciliations(t accounting.TimeRange) ([]accounting.Reconciliation, error) {
	var all []accounting.Reconciliation
	from, to := bounds(t)
	err := queryAll(r.ctx, r.store.engine.reader(), func(rows *sql.Rows) error {
		var c accounting.Reconciliation
		err := rows.Scan(&c.Day, &c.Ledger, &c.Held, &c.Charged, &c.Made)
		all = append(all, c)
		return err
	}, selectReconciliations, int64(from), int64(to))
	return all, r.store.engine.explain(err)
}
