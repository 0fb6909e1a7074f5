package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// reader is a Reader and a Reporter of a store.
type reader struct {
	ctx   context.Context // ends each call; the interface has no other place for it
	store *Store
}

// Reader returns a reader of the store that ends with ctx.
func (s *Store) Reader(ctx context.Context) accounting.Reader { return reader{ctx, s} }

// Reporter returns a reporter of the store that ends with ctx.
func (s *Store) Reporter(ctx context.Context) accounting.Reporter { return reader{ctx, s} }

// bounds returns the range for a query: both bounds are set.
func bounds(r accounting.TimeRange) (from, to accounting.Millis) {
	return max(r.From, 1), cmp.Or(r.To, math.MaxInt64)
}

// monthsUntil returns the partitions with jobs that may have records before a time. The
// clocks of nodes and schedds differ by less than a day.
func (r reader) monthsUntil(to accounting.Millis) ([]partition, error) {
	if to > math.MaxInt64-accounting.DayMillis {
		return r.store.engine.partitions(r.ctx, 0, 0)
	}
	return r.store.engine.partitions(r.ctx, 0, accounting.MonthOf(to+accounting.DayMillis))
}

// failed returns an iterator with an error alone.
func failed[T any](err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		yield(zero, err)
	}
}

// key returns the key of a job in the tables. ok is false if its source is not known.
func (s *Store) key(k accounting.JobKey) (key jobKey, ok bool) {
	source, ok := s.sources.find(k.Source)
	return jobKey{k.Month, source.id, int64(k.Seq)}, ok
}

const selectJob = `SELECT ` + jobColumns + ` FROM job j WHERE j.source = $1 AND j.seq = $2 AND j.month = $3`

func (r reader) Job(host string, seq uint64) (accounting.JobEntry, error) {
	var newest *accounting.JobEntry
	for _, source := range r.store.sources.ofHost(host) {
		months, err := r.store.engine.months(r.ctx)
		if err != nil {
			return accounting.JobEntry{}, r.store.engine.explain(err)
		}
		for _, m := range months {
			for job, err := range r.jobs(m, jobKey{m, source.id, int64(seq)}) {
				if err != nil {
					return accounting.JobEntry{}, err
				}
				if newest == nil || job.Submitted > newest.Submitted {
					newest = job
				}
			}
		}
	}
	if newest == nil {
		return accounting.JobEntry{}, fmt.Errorf("job %d.%s: %w: accounting has no such job", seq, host, roost.NotFound)
	}
	return *newest, nil
}

// jobs returns the job of a key, or nothing.
func (r reader) jobs(m accounting.Month, k jobKey) iter.Seq2[*accounting.JobEntry, error] {
	parts, err := r.store.engine.partitions(r.ctx, m, m)
	if err != nil {
		return failed[*accounting.JobEntry](err)
	}
	return mergeRows(r.ctx, parts, rowQuery[*accounting.JobEntry]{
		selectJob, []any{k.source, k.seq, int64(m)}, r.store.scanJob(),
	}, func(a, b **accounting.JobEntry) bool { return false })
}

// scanJob returns a function that reads jobColumns.
func (s *Store) scanJob() func(*sql.Rows) (*accounting.JobEntry, error) {
	values := newRowValues(jobColumnCount)
	return func(rows *sql.Rows) (*accounting.JobEntry, error) {
		if err := values.scan(rows); err != nil {
			return nil, err
		}
		return values.job(s, 0), values.err()
	}
}

// inMonth runs a query on the partition of a month.
func inMonth[T any](r reader, m accounting.Month, q rowQuery[T]) iter.Seq2[T, error] {
	parts, err := r.store.engine.partitions(r.ctx, m, m)
	if err != nil {
		return failed[T](err)
	}
	return mergeRows(r.ctx, parts, q, func(a, b *T) bool { return false })
}

const selectJobAttempts = `SELECT ` + attemptColumns + ` FROM attempt a
WHERE a.month = $1 AND a.source = $2 AND a.seq = $3 ORDER BY a.idx, a.attempt`

func (r reader) JobAttempts(key accounting.JobKey) iter.Seq2[accounting.AttemptEntry, error] {
	k, ok := r.store.key(key)
	if !ok {
		return none[accounting.AttemptEntry]
	}
	values := newRowValues(attemptColumnCount)
	return inMonth(r, k.month, rowQuery[accounting.AttemptEntry]{
		selectJobAttempts, []any{int64(k.month), k.source, k.seq},
		func(rows *sql.Rows) (a accounting.AttemptEntry, err error) {
			if err = values.scan(rows); err == nil {
				a, _, err = values.attempt(r.store)
			}
			return a, err
		},
	})
}

// none is an iterator without elements.
func none[T any](func(T, error) bool) {}

const (
	actionColumns    = `c.month, c.source, c.seq, c.at, c.idx, c.what, c.person, c.reason`
	selectJobActions = `SELECT ` + actionColumns + ` FROM action c
WHERE c.month = $1 AND c.source = $2 AND c.seq = $3 ORDER BY c.at, c.idx, c.what, c.person`
	selectActions = `SELECT ` + actionColumns + ` FROM action c WHERE c.at >= $1 AND c.at < $2
ORDER BY c.at, c.month, c.source, c.seq, c.idx, c.what, c.person`
)

func (r reader) scanAction(rows *sql.Rows) (accounting.JobAction, error) {
	var a accounting.JobAction
	var source, what, person int64
	err := rows.Scan(&a.Month, &source, &a.Seq, &a.Time, &a.Index, &what, &person, &a.Reason)
	a.Source, a.What, a.By = r.store.sources.byID(source).source, r.store.names.text(what), r.store.names.text(person)
	return a, err
}

func (r reader) JobActions(key accounting.JobKey) iter.Seq2[accounting.JobAction, error] {
	k, ok := r.store.key(key)
	if !ok {
		return none[accounting.JobAction]
	}
	return inMonth(r, k.month, rowQuery[accounting.JobAction]{
		selectJobActions, []any{int64(k.month), k.source, k.seq}, r.scanAction,
	})
}

func (r reader) Actions(t accounting.TimeRange) iter.Seq2[accounting.JobAction, error] {
	from, to := bounds(t)
	parts, err := r.monthsUntil(to)
	if err != nil {
		return failed[accounting.JobAction](err)
	}
	return mergeRows(r.ctx, parts, rowQuery[accounting.JobAction]{selectActions, []any{int64(from), int64(to)},
		r.scanAction},
		func(a, b *accounting.JobAction) bool { return a.Time < b.Time })
}

const (
	usageColumns       = `u.month, u.source, u.seq, u.idx, u.attempt, u.hour, u.windows`
	selectAttemptUsage = `SELECT ` + usageColumns + ` FROM usage u
WHERE u.month = $1 AND u.source = $2 AND u.seq = $3 AND u.idx = $4 AND u.attempt = $5 ORDER BY u.hour`
	selectJobUsage = `SELECT ` + usageColumns + `, COALESCE(a.started, 0), COALESCE(a.ended, 0)
FROM usage u LEFT JOIN attempt a ON a.month = u.month AND a.source = u.source AND a.seq = u.seq AND a.idx = u.idx
 AND a.attempt = u.attempt
WHERE u.month = $1 AND u.source = $2 AND u.seq = $3 AND u.idx >= $4 AND u.idx <= $5
ORDER BY u.idx, u.attempt, u.hour`
	selectUsage = `SELECT ` + usageColumns + ` FROM usage u WHERE u.hour >= $1 AND u.hour < $2
ORDER BY u.hour, u.month, u.source, u.seq, u.idx, u.attempt`
)

// scanUsage reads a row, which may have more columns than usageColumns.
func (r reader) scanUsage(rows *sql.Rows, more ...any) (accounting.UsageHour, error) {
	var u accounting.UsageHour
	var source int64
	var windows []byte
	if err := rows.Scan(append([]any{&u.Month, &source, &u.Seq, &u.Index, &u.Attempt, &u.Hour, &windows},
		more...)...); err != nil {
		return u, err
	}
	u.Source = r.store.sources.byID(source).source
	var err error
	u.Windows, err = unpackWindows(windows)
	return u, err
}

func (r reader) AttemptUsage(key accounting.AttemptKey) iter.Seq2[accounting.UsageHour, error] {
	k, ok := r.store.key(key.JobKey)
	if !ok {
		return none[accounting.UsageHour]
	}
	return inMonth(r, k.month, rowQuery[accounting.UsageHour]{
		selectAttemptUsage, []any{int64(k.month), k.source, k.seq, int64(key.Index), int64(key.Attempt)},
		func(rows *sql.Rows) (accounting.UsageHour, error) { return r.scanUsage(rows) },
	})
}

func (r reader) JobUsage(key accounting.JobKey, first, last int) iter.Seq2[accounting.UsageRecord, error] {
	k, ok := r.store.key(key)
	if !ok {
		return none[accounting.UsageRecord]
	}
	return inMonth(r, k.month, rowQuery[accounting.UsageRecord]{
		selectJobUsage, []any{int64(k.month), k.source, k.seq, int64(first), int64(last)},
		func(rows *sql.Rows) (u accounting.UsageRecord, err error) {
			u.UsageHour, err = r.scanUsage(rows, &u.Started, &u.Ended)
			return u, err
		},
	})
}

func (r reader) Usage(t accounting.TimeRange) iter.Seq2[accounting.UsageHour, error] {
	from, to := bounds(t)
	parts, err := r.monthsUntil(to)
	if err != nil {
		return failed[accounting.UsageHour](err)
	}
	return mergeRows(r.ctx, parts, rowQuery[accounting.UsageHour]{selectUsage, []any{int64(from), int64(to)},
		func(rows *sql.Rows) (accounting.UsageHour, error) { return r.scanUsage(rows) }},
		func(a, b *accounting.UsageHour) bool { return a.Hour < b.Hour })
}

func (r reader) Machines(t accounting.TimeRange) iter.Seq2[accounting.MachineEvent, error] {
	from, to := bounds(t)
	q := rowQuery[accounting.MachineEvent]{selectMachines, []any{int64(from), int64(to)},
		func(rows *sql.Rows) (accounting.MachineEvent, error) {
			m, err := r.store.scanMachine(rows)
			return m.MachineEvent, err
		}}
	return q.rows(r.ctx, r.store.engine.reader())
}

// MachinesAt folds all events before t. The events that it returns are the last ones,
// with the capacity and class that were known then.
func (r reader) MachinesAt(t accounting.Millis) iter.Seq2[accounting.MachineEvent, error] {
	states, last := map[string]accounting.MachineState{}, map[string]accounting.MachineEvent{}
	for e, err := range r.Machines(accounting.TimeRange{To: max(t, 1)}) {
		if err != nil {
			return failed[accounting.MachineEvent](err)
		}
		state := states[e.Node]
		state.Apply(&e)
		e.Capacity, e.Class = state.Capacity, state.Class
		states[e.Node], last[e.Node] = state, e
	}
	return func(yield func(accounting.MachineEvent, error) bool) {
		for _, node := range slices.Sorted(maps.Keys(states)) {
			if states[node].Present && !yield(last[node], nil) {
				return
			}
		}
	}
}
