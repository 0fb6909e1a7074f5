package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/roost-batch/roost"
)

// The statements that count the keys whose sum of hours differs from their row of the
// day, and whose sum of days differs from their row of the month. Those of a month are
// for one that has sums, from $1 to $2.
const (
	differentAmounts = `HAVING sum(started) <> 0 OR sum(ended) <> 0 OR sum(failed) <> 0 OR sum(wall) <> 0 OR sum(suspended) <> 0
 OR sum(held_cpu) <> 0 OR sum(used_cpu) <> 0 OR sum(held_gpu) <> 0 OR sum(held_mem) <> 0 OR sum(peak_mem) <> 0
 OR sum(lost_cpu) <> 0 OR sum(charged_cpu) <> 0 OR sum(waits) <> 0 OR sum(wait_sum) <> 0`

	negativeAmounts = `-started AS started, -ended AS ended, -failed AS failed, -wall AS wall, -suspended AS suspended,
 -held_cpu AS held_cpu, -used_cpu AS used_cpu, -held_gpu AS held_gpu, -held_mem AS held_mem, -peak_mem AS peak_mem,
 -lost_cpu AS lost_cpu, -charged_cpu AS charged_cpu, -waits AS waits, -wait_sum AS wait_sum`

	amountColumns = `started, ended, failed, wall, suspended, held_cpu, used_cpu, held_gpu, held_mem, peak_mem, lost_cpu,
 charged_cpu, waits, wait_sum`

	countWrongDays = `SELECT count(*) FROM (SELECT whole, day FROM (
SELECT whole, at / 86400000 AS day, owner, grp, project, queue, band, 1 AS row_count, 0 AS days, ` + amountColumns + `
FROM rollup WHERE step = 1
UNION ALL SELECT whole, at / 86400000 AS day, owner, grp, project, queue, band, 0 AS row_count, 1 AS days, ` +
		negativeAmounts + ` FROM rollup WHERE step = 2) AS levels
GROUP BY whole, day, owner, grp, project, queue, band
` + differentAmounts + ` OR sum(days) <> 1 OR sum(row_count) = 0) AS wrong`

	countWrongMonthSums = `SELECT count(*) FROM (SELECT whole FROM (
SELECT whole, owner, grp, project, queue, band, 1 AS days, ` + amountColumns + `
FROM rollup WHERE step = 2 AND at >= $1 AND at < $2
UNION ALL SELECT whole, owner, grp, project, queue, band, -days AS days, ` + negativeAmounts + `
FROM rollup WHERE step = 3 AND at = $1) AS levels
GROUP BY whole, owner, grp, project, queue, band
` + differentAmounts + ` OR sum(days) <> 0) AS wrong`
)

// checkSums compares sums of days with those of their hours, and sums of months with
// those of their days.
func (s *Store) checkSums(ctx context.Context) error {
	var errs []error
	count := func(what, text string, args ...any) {
		var n int64
		err := s.engine.reader().QueryRowContext(ctx, text, args...).Scan(&n)
		if err == nil && n > 0 {
			err = fmt.Errorf("table rollup: %w: %d sums of %s differ from what they sum up: restore a copy of the "+
				"store from before, or have it made again from the schedds' histories", roost.Internal, n, what)
		}
		errs = append(errs, s.engine.explain(err))
	}
	count("days", countWrongDays)
	for _, m := range s.summed.all() {
		count("month "+m.String(), countWrongMonthSums, int64(m.Start()), int64(m.End()))
	}
	return errors.Join(errs...)
}
