package store

import (
	"cmp"
	"database/sql"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// selectUsagePoints is selectUsageLines by time and band. Group 2 of the kinds of names
// is that of groups.
const selectUsagePoints = `SELECT at, band, CAST(sum(started) AS bigint), CAST(sum(ended) AS bigint),
 CAST(sum(failed) AS bigint), CAST(sum(wall) AS bigint), CAST(sum(suspended) AS bigint), CAST(sum(held_cpu) AS bigint),
 CAST(sum(used_cpu) AS bigint), CAST(sum(held_gpu) AS bigint), CAST(sum(held_mem) AS bigint),
 CAST(sum(peak_mem) AS bigint), CAST(sum(lost_cpu) AS bigint), CAST(sum(charged_cpu) AS bigint),
 CAST(sum(waits) AS bigint), CAST(sum(wait_sum) AS bigint)
FROM rollup
WHERE step = $1 AND whole = 0 AND at >= $2 AND at < $3
 AND (CAST($4 AS bigint) = 0 OR owner = $4) AND (CAST($5 AS bigint) = 0 OR project = $5)
 AND (CAST($6 AS bigint) = 0 OR queue = $6)
 AND (CAST($7 AS text) = '' OR grp IN (SELECT id FROM name WHERE kind = 2
  AND (text = $7 OR substr(text, 1, length($7) + 1) = $7 || '.')))
 AND (CAST($8 AS bigint) = 0 OR (CAST($8 AS bigint) >> CAST(band AS integer)) & 1 = 1)
GROUP BY at, band`

// UsagePoints folds the hours at the ends of the range into their days.
func (r reader) UsagePoints(t accounting.TimeRange, f accounting.Filter, byHour bool) ([]accounting.UsagePoint, error) {
	type pointKey struct {
		at   accounting.Millis
		band roost.PriorityBand
	}
	points := map[pointKey]*accounting.UsagePoint{}
	scan := func(rows *sql.Rows) error {
		var at accounting.Millis
		var band int64
		var a accounting.Amounts
		err := rows.Scan(&at, &band, &a.Started, &a.Ended, &a.Failed, &a.Wall, &a.Suspended, &a.HeldCPU, &a.UsedCPU,
			&a.HeldGPU, &a.HeldMem, &a.PeakMem, &a.LostCPU, &a.ChargedCPU, &a.Waits, &a.WaitSum)
		if !byHour {
			at = at.Day()
		}
		p := entry(points, pointKey{at, bandOf(band)})
		p.At, p.Band = at, bandOf(band)
		p.Add(&a)
		return err
	}
	names := &r.store.names
	args := []any{names.find(ownerName, f.Owner), names.find(projectName, f.Project), names.find(queueName, f.Queue),
		f.Group, int64(f.Bands)}
	var err error
	if byHour {
		from, to := bounds(t)
		err = queryAll(r.ctx, r.store.engine.reader(), scan, selectUsagePoints,
			append([]any{hourStep, int64(from.Hour()), int64(to)}, args...)...)
		err = r.store.engine.explain(err)
	} else {
		err = r.queryRanges(stepRanges(t), scan, selectUsagePoints, args...)
	}
	return sortedLines(points, func(a, b *accounting.UsagePoint) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Band, b.Band))
	}), err
}
