package store

import (
	"context"
	"database/sql"

	"github.com/roost-batch/roost/internal/accounting"
)

// The steps of roll-ups. The numbers are on disk.
const (
	hourStep  = 1
	dayStep   = 2
	monthStep = 3 // of rollup alone
)

// The statements that replace the roll-ups of hours, and of their day.
const (
	deleteUsageSums    = `DELETE FROM rollup WHERE step = $1 AND at >= $2 AND at < $3`
	deleteEndSums      = `DELETE FROM rollup_end WHERE step = $1 AND at >= $2 AND at < $3`
	deleteWaitSums     = `DELETE FROM rollup_wait WHERE step = $1 AND at >= $2 AND at < $3`
	deleteSizeSums     = `DELETE FROM rollup_size WHERE step = $1 AND at >= $2 AND at < $3`
	deleteCapacitySums = `DELETE FROM rollup_capacity WHERE step = $1 AND at >= $2 AND at < $3`

	insertUsageSum = `INSERT INTO rollup (step, whole, at, owner, grp, project, queue, band, started, ended, failed, wall,
 suspended, held_cpu, used_cpu, held_gpu, held_mem, peak_mem, lost_cpu, charged_cpu, waits, wait_sum)
`
	usageSumRow  = `VALUES (1, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)`
	usageSumRows = `SELECT 1, k.* FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
 $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[],
 $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[], $20::bigint[],
 $21::bigint[]) AS k`
	insertEndSum = `INSERT INTO rollup_end (step, at, owner, cause, attempts, held_cpu, lost_cpu, saved_cpu)
`
	endSumRow  = `VALUES (1, $1, $2, $3, $4, $5, $6, $7)`
	endSumRows = `SELECT 1, k.* FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
 $7::bigint[]) AS k`
	insertWaitSum = `INSERT INTO rollup_wait (step, at, band, queue, bucket, attempts, wait_sum)
`
	waitSumRow  = `VALUES (1, $1, $2, $3, $4, $5, $6)`
	waitSumRows = `SELECT 1, k.* FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[],
 $6::bigint[]) AS k`
	insertSizeSum = `INSERT INTO rollup_size (step, at, band, bucket, attempts, wall, held_cpu, waits, wait_sum)
`
	sizeSumRow  = `VALUES (1, $1, $2, $3, $4, $5, $6, $7, $8)`
	sizeSumRows = `SELECT 1, k.* FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
 $7::bigint[], $8::bigint[]) AS k`
	insertCapacitySum = `INSERT INTO rollup_capacity (step, at, class, total, owner, drained, held, used, desktop, total_gpu,
 held_gpu, attempts)
`
	capacitySumRow  = `VALUES (1, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`
	capacitySumRows = `SELECT 1, k.* FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
 $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[]) AS k`

	sumUsageDay = `INSERT INTO rollup (step, whole, at, owner, grp, project, queue, band, started, ended, failed, wall,
 suspended, held_cpu, used_cpu, held_gpu, held_mem, peak_mem, lost_cpu, charged_cpu, waits, wait_sum)
SELECT 2, whole, CAST($1 AS bigint), owner, grp, project, queue, band, sum(started), sum(ended), sum(failed), sum(wall),
 sum(suspended), sum(held_cpu), sum(used_cpu), sum(held_gpu), sum(held_mem), sum(peak_mem), sum(lost_cpu),
 sum(charged_cpu), sum(waits), sum(wait_sum)
FROM rollup WHERE step = 1 AND whole IN (0, 1) AND at >= $1 AND at < $2
GROUP BY whole, owner, grp, project, queue, band`
	sumEndDay = `INSERT INTO rollup_end (step, at, owner, cause, attempts, held_cpu, lost_cpu, saved_cpu)
SELECT 2, CAST($1 AS bigint), owner, cause, sum(attempts), sum(held_cpu), sum(lost_cpu), sum(saved_cpu)
FROM rollup_end WHERE step = 1 AND at >= $1 AND at < $2 GROUP BY owner, cause`
	sumWaitDay = `INSERT INTO rollup_wait (step, at, band, queue, bucket, attempts, wait_sum)
SELECT 2, CAST($1 AS bigint), band, queue, bucket, sum(attempts), sum(wait_sum)
FROM rollup_wait WHERE step = 1 AND at >= $1 AND at < $2 GROUP BY band, queue, bucket`
	sumSizeDay = `INSERT INTO rollup_size (step, at, band, bucket, attempts, wall, held_cpu, waits, wait_sum)
SELECT 2, CAST($1 AS bigint), band, bucket, sum(attempts), sum(wall), sum(held_cpu), sum(waits), sum(wait_sum)
FROM rollup_size WHERE step = 1 AND at >= $1 AND at < $2 GROUP BY band, bucket`
	sumCapacityDay = `INSERT INTO rollup_capacity (step, at, class, total, owner, drained, held, used, desktop, total_gpu,
 held_gpu, attempts)
SELECT 2, CAST($1 AS bigint), class, sum(total), sum(owner), sum(drained), sum(held), sum(used), sum(desktop),
 sum(total_gpu), sum(held_gpu), sum(attempts)
FROM rollup_capacity WHERE step = 1 AND at >= $1 AND at < $2 GROUP BY class`
)

// storeSums replaces the roll-ups of the hours, then of their day, and then of its month.
func (s *Store) storeSums(ctx context.Context, tx *sql.Tx, sums *hourSums) error {
	day := sums.hours.From.Day()
	month := accounting.MonthOf(day)
	if err := s.storeMonth(ctx, tx, month); err != nil {
		return err
	}
	if err := addDayTo(ctx, tx, month, day, subtractDay); err != nil {
		return err
	}
	for _, text := range []string{
		deleteUsageSums, deleteEndSums, deleteWaitSums, deleteSizeSums, deleteCapacitySums,
	} {
		if _, err := tx.ExecContext(ctx, text, hourStep, int64(sums.hours.From), int64(sums.hours.To)); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, text, dayStep, int64(day), int64(day+1)); err != nil {
			return err
		}
	}
	if err := s.insertSums(ctx, tx, sums); err != nil {
		return err
	}
	for _, text := range []string{sumUsageDay, sumEndDay, sumWaitDay, sumSizeDay, sumCapacityDay} {
		if _, err := tx.ExecContext(ctx, text, int64(day), int64(day+accounting.DayMillis)); err != nil {
			return err
		}
	}
	if err := addDayTo(ctx, tx, month, day, addDay); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, deleteEmptyMonthSums, int64(month.Start()))
	return err
}

func (s *Store) insertSums(ctx context.Context, tx *sql.Tx, sums *hourSums) error {
	names := s.names.draft()
	insert := numberInsert{insertUsageSum + usageSumRow, insertUsageSum + usageSumRows}
	err := insertAll(ctx, tx, s.engine, insert,
		sums.usage, func(k usageSumKey, a *accounting.Amounts) []int64 {
			return []int64{
				k.whole, int64(k.at), k.owner, k.group, k.project, k.queue, k.band, a.Started, a.Ended, a.Failed,
				a.Wall, a.Suspended, a.HeldCPU, a.UsedCPU, a.HeldGPU, a.HeldMem, a.PeakMem, a.LostCPU, a.ChargedCPU,
				a.Waits, a.WaitSum,
			}
		})
	if err != nil {
		return err
	}
	err = insertAll(ctx, tx, s.engine, numberInsert{insertEndSum + endSumRow, insertEndSum + endSumRows},
		sums.ends, func(k endSumKey, e *accounting.EndLine) []int64 {
			return []int64{int64(k.at), k.owner, int64(k.cause), e.Count, e.HeldCPU, e.LostCPU, e.SavedCPU}
		})
	if err != nil {
		return err
	}
	err = insertAll(ctx, tx, s.engine, numberInsert{insertWaitSum + waitSumRow, insertWaitSum + waitSumRows},
		sums.waits, func(k waitSumKey, w *accounting.WaitLine) []int64 {
			return []int64{int64(k.at), k.band, k.queue, int64(k.bucket), w.Count, w.WaitSum}
		})
	if err != nil {
		return err
	}
	err = insertAll(ctx, tx, s.engine, numberInsert{insertSizeSum + sizeSumRow, insertSizeSum + sizeSumRows},
		sums.sizes, func(k sizeSumKey, z *accounting.SizeLine) []int64 {
			return []int64{int64(k.at), k.band, int64(k.bucket), z.Count, z.Wall, z.HeldCPU, z.Waits, z.WaitSum}
		})
	if err != nil {
		return err
	}
	insert = numberInsert{insertCapacitySum + capacitySumRow, insertCapacitySum + capacitySumRows}
	return insertAll(ctx, tx, s.engine, insert,
		sums.capacity, func(k capacitySumKey, c *capacitySum) []int64 {
			return []int64{
				int64(k.at), names.id(className, k.class), c.Total, c.Owner, c.Drained, c.Held, c.Used, c.Desktop,
				c.TotalGPU,
				c.HeldGPU, c.attempts,
			}
		})
}

// insertAll inserts a row for each entry.
func insertAll[K comparable, V any](ctx context.Context, tx *sql.Tx, e engine, insert numberInsert, sums map[K]*V,
	values func(K, *V) []int64) error {
	rows := make([][]int64, 0, len(sums))
	for k, v := range sums {
		rows = append(rows, values(k, v))
	}
	return e.insertRows(ctx, tx, insert, rows)
}
