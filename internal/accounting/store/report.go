package store

import (
	"cmp"
	"database/sql"
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// stepRange is a range of roll-ups of one step.
type stepRange struct {
	step     int
	from, to accounting.Millis
}

// stepRanges covers a range by whole days and, at its ends, by hours.
func stepRanges(r accounting.TimeRange) []stepRange {
	from, to := bounds(r)
	from = from.Hour()
	if rest := to.Hour(); rest != to && r.To != 0 {
		to = rest + accounting.HourMillis
	}
	firstDay := (from + accounting.DayMillis - 1).Day()
	lastDay := to.Day()
	if firstDay >= lastDay {
		return []stepRange{{hourStep, from, to}}
	}
	ranges := []stepRange{{dayStep, firstDay, lastDay}}
	if from < firstDay {
		ranges = append(ranges, stepRange{hourStep, from, firstDay})
	}
	if lastDay < to {
		ranges = append(ranges, stepRange{hourStep, lastDay, to})
	}
	return ranges
}

// monthRanges puts whole months that have sums in the place of their days.
func monthRanges(ranges []stepRange, months []accounting.Month) []stepRange {
	var all []stepRange
	for _, r := range ranges {
		if r.step != dayStep {
			all = append(all, r)
			continue
		}
		from := r.from
		for _, m := range months {
			start, end := m.Start(), m.End()
			if start < from || end > r.to {
				continue
			}
			if from < start {
				all = append(all, stepRange{dayStep, from, start})
			}
			if n := len(all) - 1; n >= 0 && all[n].step == monthStep && all[n].to == start {
				all[n].to = end
			} else {
				all = append(all, stepRange{monthStep, start, end})
			}
			from = end
		}
		if from < r.to {
			all = append(all, stepRange{dayStep, from, r.to})
		}
	}
	return all
}

// queryRanges runs a query for each part of a range. Its first arguments are step, from
// and to.
func (r reader) queryRanges(ranges []stepRange, scan func(*sql.Rows) error, text string, args ...any) error {
	for _, part := range ranges {
		all := append([]any{part.step, int64(part.from), int64(part.to)}, args...)
		if err := queryAll(r.ctx, r.store.engine.reader(), scan, text, all...); err != nil {
			return fmt.Errorf("report: %w", r.store.engine.explain(err))
		}
	}
	return nil
}

// selectUsageLines has the same text for each grouping. A name that a report does not go
// by is 0 in all rows. Group 2 of the kinds of names is that of groups.
const selectUsageLines = `SELECT CASE WHEN $5 = 1 THEN owner ELSE 0 END AS by_owner, CASE WHEN $6 = 1 THEN grp ELSE 0 END AS by_grp,
 CASE WHEN $7 = 1 THEN project ELSE 0 END AS by_project, CASE WHEN $8 = 1 THEN queue ELSE 0 END AS by_queue,
 CASE WHEN $9 = 1 THEN band ELSE 0 END AS by_band,
 CAST(sum(started) AS bigint), CAST(sum(ended) AS bigint), CAST(sum(failed) AS bigint), CAST(sum(wall) AS bigint),
 CAST(sum(suspended) AS bigint), CAST(sum(held_cpu) AS bigint), CAST(sum(used_cpu) AS bigint),
 CAST(sum(held_gpu) AS bigint), CAST(sum(held_mem) AS bigint), CAST(sum(peak_mem) AS bigint),
 CAST(sum(lost_cpu) AS bigint), CAST(sum(charged_cpu) AS bigint), CAST(sum(waits) AS bigint), CAST(sum(wait_sum) AS bigint)
FROM rollup
WHERE step = $1 AND whole = $4 AND at >= $2 AND at < $3
 AND (CAST($10 AS bigint) = 0 OR owner = $10) AND (CAST($11 AS bigint) = 0 OR project = $11)
 AND (CAST($12 AS bigint) = 0 OR queue = $12)
 AND (CAST($13 AS text) = '' OR grp IN (SELECT id FROM name WHERE kind = 2
  AND (text = $13 OR substr(text, 1, length($13) + 1) = $13 || '.')))
 AND (CAST($14 AS bigint) = 0 OR (CAST($14 AS bigint) >> CAST(band AS integer)) & 1 = 1)
GROUP BY by_owner, by_grp, by_project, by_queue, by_band`

func (r reader) UsageLines(q accounting.UsageQuery) ([]accounting.UsageLine, error) {
	type lineKey struct{ owner, group, project, queue, band int64 }
	lines := map[lineKey]*accounting.Amounts{}
	names := &r.store.names
	by := func(b accounting.GroupBy) int64 { return boolNumber(q.By&b != 0) }
	err := r.queryRanges(monthRanges(stepRanges(q.Range), r.store.summed.all()), func(rows *sql.Rows) error {
		var k lineKey
		var a accounting.Amounts
		err := rows.Scan(&k.owner, &k.group, &k.project, &k.queue, &k.band, &a.Started, &a.Ended, &a.Failed, &a.Wall,
			&a.Suspended, &a.HeldCPU, &a.UsedCPU, &a.HeldGPU, &a.HeldMem, &a.PeakMem, &a.LostCPU, &a.ChargedCPU,
			&a.Waits,
			&a.WaitSum)
		entry(lines, k).Add(&a)
		return err
	}, selectUsageLines, boolNumber(q.WholeAtEnd), by(accounting.ByOwner), by(accounting.ByGroup),
		by(accounting.ByProject),
		by(accounting.ByQueue), by(accounting.ByBand), names.find(ownerName, q.Filter.Owner),
		names.find(projectName, q.Filter.Project), names.find(queueName, q.Filter.Queue), q.Filter.Group,
		int64(q.Filter.Bands))
	if err != nil {
		return nil, err
	}
	result := make([]accounting.UsageLine, 0, len(lines))
	for k, a := range lines {
		result = append(result, accounting.UsageLine{
			Owner: names.text(k.owner), Group: names.text(k.group), Project: names.text(k.project),
			Queue: names.text(k.queue),
			Band:  bandOf(k.band), Amounts: *a,
		})
	}
	slices.SortFunc(result, func(a, b accounting.UsageLine) int {
		return cmp.Or(cmp.Compare(b.HeldCPU, a.HeldCPU), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Group, b.Group),
			cmp.Compare(a.Project, b.Project), cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Band, b.Band))
	})
	return result, nil
}

const selectEndLines = `SELECT CASE WHEN $4 = 1 THEN owner ELSE 0 END AS by_owner, cause, CAST(sum(attempts) AS bigint),
 CAST(sum(held_cpu) AS bigint), CAST(sum(lost_cpu) AS bigint), CAST(sum(saved_cpu) AS bigint)
FROM rollup_end WHERE step = $1 AND at >= $2 AND at < $3 AND (CAST($5 AS bigint) = 0 OR owner = $5)
GROUP BY by_owner, cause`

func (r reader) EndLines(t accounting.TimeRange, owner string, byOwner bool) ([]accounting.EndLine, error) {
	type lineKey struct {
		owner int64
		cause accounting.EndCause
	}
	lines := map[lineKey]*accounting.EndLine{}
	err := r.queryRanges(stepRanges(t), func(rows *sql.Rows) error {
		var k lineKey
		var e accounting.EndLine
		err := rows.Scan(&k.owner, &k.cause, &e.Count, &e.HeldCPU, &e.LostCPU, &e.SavedCPU)
		l := entry(lines, k)
		l.Owner, l.Cause = r.store.names.text(k.owner), k.cause
		l.Count += e.Count
		l.HeldCPU += e.HeldCPU
		l.LostCPU += e.LostCPU
		l.SavedCPU += e.SavedCPU
		return err
	}, selectEndLines, boolNumber(byOwner), r.store.names.find(ownerName, owner))
	return sortedLines(lines, func(a, b *accounting.EndLine) int {
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Cause, b.Cause))
	}), err
}

// sortedLines returns the values of a map in an order.
func sortedLines[K comparable, V any](lines map[K]*V, compare func(a, b *V) int) []V {
	result := make([]V, 0, len(lines))
	for _, l := range lines {
		result = append(result, *l)
	}
	slices.SortFunc(result, func(a, b V) int { return compare(&a, &b) })
	return result
}

const selectWaitLines = `SELECT band, queue, bucket, CAST(sum(attempts) AS bigint), CAST(sum(wait_sum) AS bigint)
FROM rollup_wait WHERE step = $1 AND at >= $2 AND at < $3 GROUP BY band, queue, bucket`

func (r reader) WaitLines(t accounting.TimeRange) ([]accounting.WaitLine, error) {
	lines := map[waitSumKey]*accounting.WaitLine{}
	err := r.queryRanges(stepRanges(t), func(rows *sql.Rows) error {
		var k waitSumKey
		var w accounting.WaitLine
		err := rows.Scan(&k.band, &k.queue, &k.bucket, &w.Count, &w.WaitSum)
		l := entry(lines, k)
		l.Band, l.Queue, l.Bucket = bandOf(k.band), r.store.names.text(k.queue), k.bucket
		l.Count += w.Count
		l.WaitSum += w.WaitSum
		return err
	}, selectWaitLines)
	return sortedLines(lines, func(a, b *accounting.WaitLine) int {
		return cmp.Or(cmp.Compare(a.Band, b.Band), cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Bucket, b.Bucket))
	}), err
}

const selectSizeLines = `SELECT band, bucket, CAST(sum(attempts) AS bigint), CAST(sum(wall) AS bigint),
 CAST(sum(held_cpu) AS bigint), CAST(sum(waits) AS bigint), CAST(sum(wait_sum) AS bigint)
FROM rollup_size WHERE step = $1 AND at >= $2 AND at < $3 GROUP BY band, bucket`

func (r reader) SizeLines(t accounting.TimeRange) ([]accounting.SizeLine, error) {
	lines := map[sizeSumKey]*accounting.SizeLine{}
	err := r.queryRanges(stepRanges(t), func(rows *sql.Rows) error {
		var k sizeSumKey
		var z accounting.SizeLine
		err := rows.Scan(&k.band, &k.bucket, &z.Count, &z.Wall, &z.HeldCPU, &z.Waits, &z.WaitSum)
		l := entry(lines, k)
		l.Band, l.Bucket = bandOf(k.band), k.bucket
		l.Count += z.Count
		l.Wall += z.Wall
		l.HeldCPU += z.HeldCPU
		l.Waits += z.Waits
		l.WaitSum += z.WaitSum
		return err
	}, selectSizeLines)
	return sortedLines(lines, func(a, b *accounting.SizeLine) int {
		return cmp.Or(cmp.Compare(a.Band, b.Band), cmp.Compare(a.Bucket, b.Bucket))
	}), err
}

const selectCapacityLines = `SELECT at, class, total, owner, drained, held, used, desktop, total_gpu, held_gpu
FROM rollup_capacity WHERE step = $1 AND at >= $2 AND at < $3`

func (r reader) CapacityLines(t accounting.TimeRange, byHour bool) ([]accounting.CapacityLine, error) {
	lines := map[capacitySumKey]*accounting.CapacityLine{}
	scan := func(rows *sql.Rows) error {
		var k capacitySumKey
		var class int64
		var c accounting.CapacityLine
		err := rows.Scan(&k.at, &class, &c.Total, &c.Owner, &c.Drained, &c.Held, &c.Used, &c.Desktop, &c.TotalGPU,
			&c.HeldGPU)
		if k.class = r.store.names.text(class); !byHour {
			k.at = 0
		}
		l := entry(lines, k)
		l.Class, l.Hour = k.class, k.at
		l.Add(&c)
		return err
	}
	var err error
	if byHour {
		from, to := bounds(t)
		err = queryAll(r.ctx, r.store.engine.reader(), scan, selectCapacityLines, hourStep, int64(from.Hour()),
			int64(to))
		err = r.store.engine.explain(err)
	} else {
		err = r.queryRanges(stepRanges(t), scan, selectCapacityLines)
	}
	for _, l := range lines {
		l.Balance()
	}
	return sortedLines(lines, func(a, b *accounting.CapacityLine) int {
		return cmp.Or(cmp.Compare(a.Hour, b.Hour), cmp.Compare(a.Class, b.Class))
	}), err
}

// Efficiency goes by attempts that ended in the range, each as a whole.
func (r reader) Efficiency(t accounting.TimeRange, f accounting.Filter, limit int) ([]accounting.EfficiencyLine,
	error) {
	lines, err := r.UsageLines(accounting.UsageQuery{Range: t, By: accounting.ByOwner, Filter: f, WholeAtEnd: true})
	if err != nil {
		return nil, err
	}
	var result []accounting.EfficiencyLine
	for _, l := range lines {
		result = append(result, accounting.EfficiencyLine{
			Owner: l.Owner, Attempts: l.Ended, HeldCPU: l.HeldCPU, UsedCPU: l.UsedCPU, HeldMem: l.HeldMem,
			PeakMem:   l.PeakMem,
			WastedCPU: max(l.HeldCPU-l.UsedCPU, 0),
		})
	}
	slices.SortStableFunc(result, func(a, b accounting.EfficiencyLine) int {
		return cmp.Compare(b.WastedCPU,
			a.WastedCPU)
	})
	if limit > 0 {
		result = result[:min(limit, len(result))]
	}
	return result, nil
}

func (r reader) Sources() ([]accounting.SourceStatus, error) {
	t := &r.store.sources
	t.mu.RLock()
	defer t.mu.RUnlock()
	var all []accounting.SourceStatus
	for _, row := range t.all {
		status := accounting.SourceStatus{
			Source: row.source, Host: row.host, Next: row.next, Watermark: row.watermark, Skew: row.skew,
		}
		err := queryAll(r.ctx, r.store.engine.reader(), func(rows *sql.Rows) error {
			var g accounting.FeedGap
			err := rows.Scan(&g.From, &g.To, &g.Noted)
			status.Gaps = append(status.Gaps, g)
			return err
		}, selectGaps, row.id)
		if err != nil {
			return nil, r.store.engine.explain(err)
		}
		all = append(all, status)
	}
	slices.SortFunc(all, func(a, b accounting.SourceStatus) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Source.String(), b.Source.String()))
	})
	return all, nil
}

// payerNames are the columns of a payer: exactly one of them is not empty.
func payerNames(p accounting.Payer) ([]any, error) {
	n := 0
	for _, name := range []string{p.Project, p.Group, p.Owner} {
		n += int(boolNumber(name != ""))
	}
	if n != 1 {
		return nil, fmt.Errorf("payer: %w: name a project, a group or an owner", roost.Invalid)
	}
	return []any{p.Project, p.Group, p.Owner}, nil
}
