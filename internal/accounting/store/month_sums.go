package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync"

	"github.com/roost-batch/roost/internal/accounting"
)

// A report on a month by user would read the rows of thirty days, most of which have the
// same keys. So there is a row for each key of a month. The naive way is to sum the days
// up again when one changes, which reads them all every few seconds. Instead the old rows
// of the day are taken from the month's, and the new ones added, in the transaction that
// replaces them. Amounts are whole numbers, so nothing is lost by that. A row counts the
// days that have its key, and goes with the last of them.
const (
	sumMonth = `INSERT INTO rollup (step, whole, at, owner, grp, project, queue, band, started, ended, failed, wall,
 suspended, held_cpu, used_cpu, held_gpu, held_mem, peak_mem, lost_cpu, charged_cpu, waits, wait_sum, days)
SELECT 3, whole, CAST($1 AS bigint), owner, grp, project, queue, band, sum(started), sum(ended), sum(failed), sum(wall),
 sum(suspended), sum(held_cpu), sum(used_cpu), sum(held_gpu), sum(held_mem), sum(peak_mem), sum(lost_cpu),
 sum(charged_cpu), sum(waits), sum(wait_sum), count(*)
FROM rollup WHERE step = 2 AND whole IN (0, 1) AND at >= $1 AND at < $2
GROUP BY whole, owner, grp, project, queue, band`

	addDayToMonth = `INSERT INTO rollup (step, whole, at, owner, grp, project, queue, band, started, ended, failed, wall,
 suspended, held_cpu, used_cpu, held_gpu, held_mem, peak_mem, lost_cpu, charged_cpu, waits, wait_sum, days)
SELECT 3, whole, CAST($1 AS bigint), owner, grp, project, queue, band, $3 * started, $3 * ended, $3 * failed, $3 * wall,
 $3 * suspended, $3 * held_cpu, $3 * used_cpu, $3 * held_gpu, $3 * held_mem, $3 * peak_mem, $3 * lost_cpu,
 $3 * charged_cpu, $3 * waits, $3 * wait_sum, CAST($3 AS bigint)
FROM rollup WHERE step = 2 AND whole IN (0, 1) AND at = $2
ON CONFLICT (step, whole, at, owner, grp, project, queue, band) DO UPDATE SET started = rollup.started + excluded.started,
 ended = rollup.ended + excluded.ended, failed = rollup.failed + excluded.failed, wall = rollup.wall + excluded.wall,
 suspended = rollup.suspended + excluded.suspended, held_cpu = rollup.held_cpu + excluded.held_cpu,
 used_cpu = rollup.used_cpu + excluded.used_cpu, held_gpu = rollup.held_gpu + excluded.held_gpu,
 held_mem = rollup.held_mem + excluded.held_mem, peak_mem = rollup.peak_mem + excluded.peak_mem,
 lost_cpu = rollup.lost_cpu + excluded.lost_cpu, charged_cpu = rollup.charged_cpu + excluded.charged_cpu,
 waits = rollup.waits + excluded.waits, wait_sum = rollup.wait_sum + excluded.wait_sum,
 days = rollup.days + excluded.days`

	deleteEmptyMonthSums = `DELETE FROM rollup WHERE step = 3 AND whole IN (0, 1) AND at = $1 AND days = 0`

	selectSummedMonths = `SELECT month FROM summed_month ORDER BY month`
	insertSummedMonth  = `INSERT INTO summed_month (month) VALUES ($1)`
	selectNextSumDay   = `SELECT coalesce(min(at), 0) FROM rollup WHERE step = 2 AND whole = 0 AND at >= $1`
)

// The signs with which addDayToMonth counts a day.
const (
	addDay      = 1
	subtractDay = -1
)

// summedMonths has in memory which months have sums. A month that has them has them for
// ever.
type summedMonths struct {
	mu     sync.RWMutex
	months []accounting.Month // in order
}

func (t *summedMonths) load(ctx context.Context, db *sql.DB) error {
	var months []accounting.Month
	err := queryAll(ctx, db, func(rows *sql.Rows) error {
		var m accounting.Month
		err := rows.Scan(&m)
		months = append(months, m)
		return err
	}, selectSummedMonths)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.months = months
	return nil
}

// all returns the months in order. The caller does not change them.
func (t *summedMonths) all() []accounting.Month {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.months
}

func (t *summedMonths) has(m accounting.Month) bool {
	_, found := slices.BinarySearch(t.all(), m)
	return found
}

// add adds a month whose sums have been committed.
func (t *summedMonths) add(m accounting.Month) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at, found := slices.BinarySearch(t.months, m); !found {
		t.months = slices.Insert(slices.Clone(t.months), at, m)
	}
}

// storeMonth sums up the days of a month that has no sums yet.
func (s *Store) storeMonth(ctx context.Context, tx *sql.Tx, m accounting.Month) error {
	if s.summed.has(m) {
		return nil
	}
	if _, err := tx.ExecContext(ctx, sumMonth, int64(m.Start()), int64(m.End())); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, insertSummedMonth, int64(m))
	return err
}

// addDayTo adds the rows of a day to those of its month, or takes them away.
func addDayTo(ctx context.Context, tx *sql.Tx, m accounting.Month, day accounting.Millis, sign int64) error {
	_, err := tx.ExecContext(ctx, addDayToMonth, int64(m.Start()), int64(day), sign)
	return err
}

// sumOldMonths sums up the months that an older release left with days alone. Each has
// its own transaction, so that feeds wait for one at most. It looks once after opening.
func (s *Store) sumOldMonths(ctx context.Context) error {
	s.mu.Lock()
	looked := s.looked
	s.mu.Unlock()
	for start := accounting.Millis(0); !looked; {
		var day accounting.Millis
		if err := s.engine.reader().QueryRowContext(ctx, selectNextSumDay, int64(start)).Scan(&day); err != nil {
			return s.engine.explain(err)
		}
		if day == 0 {
			break
		}
		m := accounting.MonthOf(day)
		if err := s.sumOldMonth(ctx, m); err != nil {
			return fmt.Errorf("sums of month %s: %w", m, err)
		}
		start = m.End()
	}
	s.mu.Lock()
	s.looked = true
	s.mu.Unlock()
	return nil
}

func (s *Store) sumOldMonth(ctx context.Context, m accounting.Month) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.inTx(ctx, func(tx *sql.Tx) error { return s.storeMonth(ctx, tx, m) })
	if err == nil {
		s.summed.add(m)
	}
	return err
}
