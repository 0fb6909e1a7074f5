package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// closeDelay is how long after its end a month remains open for late news.
const closeDelay = 72 * accounting.HourMillis

const (
	selectClosed = `SELECT month FROM month WHERE closed <> 0`
	closeMonth   = `INSERT INTO month (month, closed, closer, rates)
VALUES ($1, $2, $3, (SELECT coalesce(max(id), 0) FROM rate)) ON CONFLICT (month) DO NOTHING`
	selectClose  = `SELECT coalesce(max(closed), 0), coalesce(max(rates), 0) FROM month WHERE month = $1`
	countPending = `SELECT (SELECT count(*) FROM dirty WHERE hour < $1) + (SELECT count(*) FROM due)`
	firstCharged = `SELECT coalesce(min(statement), 0) FROM charge_sum`
)

func (s *Store) closedMonths(ctx context.Context) (map[accounting.Month]bool, error) {
	closed := map[accounting.Month]bool{}
	err := queryAll(ctx, s.engine.reader(), func(rows *sql.Rows) error {
		var m accounting.Month
		err := rows.Scan(&m)
		closed[m] = true
		return err
	}, selectClosed)
	return closed, err
}

// CloseMonth closes a month by order of a person. What comes later about it is charged on
// the statement of the first open month.
func (s *Store) CloseMonth(ctx context.Context, m accounting.Month, by string, now accounting.Millis) error {
	if now < m.End() {
		return fmt.Errorf("month %s: %w: it ends on %s", m, roost.Conflict, m.End().Time().Format("2006-01-02"))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inPermanentTx(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, closeMonth, int64(m), int64(now), cleanText(by, maxNameBytes))
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n != 0 {
			return err
		}
		return fmt.Errorf("month %s: %w: it is closed", m, roost.Finished)
	})
}

// CloseMonths closes each month that is complete and computed. It is complete when all
// sources have passed its end by three days. It returns those that it closed.
func (s *Store) CloseMonths(ctx context.Context, now accounting.Millis) ([]accounting.Month, error) {
	watermark := s.sources.watermark()
	var first accounting.Month
	if err := s.engine.reader().QueryRowContext(ctx, firstCharged).Scan(&first); err != nil {
		return nil, s.engine.explain(err)
	}
	months, err := s.engine.months(ctx)
	if err != nil || len(months) == 0 {
		return nil, s.engine.explain(err)
	}
	if first == 0 || months[0] < first {
		first = months[0]
	}
	isClosed, err := s.closedMonths(ctx)
	if err != nil {
		return nil, s.engine.explain(err)
	}
	var closed []accounting.Month
	for m := first; m.End()+closeDelay <= min(watermark, now); m++ {
		if isClosed[m] {
			continue
		}
		var pending int
		if err := s.engine.reader().QueryRowContext(ctx, countPending, int64(m.End())).Scan(&pending); err != nil {
			return closed, s.engine.explain(err)
		}
		if pending > 0 {
			break
		}
		if err := s.CloseMonth(ctx, m, "", now); err != nil {
			return closed, err
		}
		closed = append(closed, m)
	}
	return closed, nil
}

// watermark returns up to when all feeds are complete. 0: there is no source.
func (t *sourceTable) watermark() accounting.Millis {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var least accounting.Millis
	first := true
	for _, r := range t.all {
		if first || r.watermark < least {
			least, first = r.watermark, false
		}
	}
	return least
}

const selectMonthEnd = `SELECT coalesce(max(ended), 0), coalesce(max(CASE WHEN ended = 0 THEN 1 ELSE 0 END), 0)
FROM attempt WHERE month = $1`

// DropMonth removes the jobs that were submitted in a closed month, with all that belongs
// to them. Roll-ups and charges remain. The hours in which these jobs ran are frozen:
// they cannot be computed again.
func (s *Store) DropMonth(ctx context.Context, m accounting.Month) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	closed, err := s.closedMonths(ctx)
	if err != nil {
		return s.engine.explain(err)
	}
	if !closed[m] {
		return fmt.Errorf("month %s: %w: it is open; close it before its jobs are removed", m, roost.Conflict)
	}
	parts, err := s.engine.partitions(ctx, m, m)
	if err != nil || len(parts) == 0 {
		return err
	}
	var end accounting.Millis
	var open bool
	if err := parts[0].db.QueryRowContext(ctx, selectMonthEnd, int64(m)).Scan(&end, &open); err != nil {
		return fmt.Errorf("%s: %w", parts[0].name, err)
	}
	if open {
		return fmt.Errorf("month %s: %w: an attempt of one of its jobs runs", m, roost.Conflict)
	}
	frozen := max(s.frozen, (end + accounting.HourMillis).Hour())
	err = s.inTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, deleteFrozen, int64(frozen)); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, upsertCounter, "frozen", int64(frozen))
		return err
	})
	if err != nil {
		return err
	}
	s.frozen = frozen
	return s.engine.dropMonth(ctx, m)
}

const deleteFrozen = `DELETE FROM dirty WHERE hour < $1`
