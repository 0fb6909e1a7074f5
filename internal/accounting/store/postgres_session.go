package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/failpoint"
)

// postgresSession writes all rows of a batch in one transaction. Rows with new keys are
// copied into place. Others are copied into temporary tables and merged from there. Both
// are several times faster than to insert rows one by one.
type postgresSession struct {
	engine *postgresEngine
	conn   *sql.Conn
	tx     *sql.Tx
	added  []accounting.Month // partitions that the transaction makes
}

const (
	stageJobs     = `CREATE TEMPORARY TABLE IF NOT EXISTS job_stage (LIKE job) ON COMMIT DELETE ROWS`
	stageAttempts = `CREATE TEMPORARY TABLE IF NOT EXISTS attempt_stage (LIKE attempt) ON COMMIT DELETE ROWS`
	stageActions  = `CREATE TEMPORARY TABLE IF NOT EXISTS action_stage (LIKE action) ON COMMIT DELETE ROWS`
	stageUsage    = `CREATE TEMPORARY TABLE IF NOT EXISTS usage_stage (LIKE usage) ON COMMIT DELETE ROWS`

	mergeJobs     = `INSERT INTO job SELECT * FROM job_stage` + onJobConflict
	mergeAttempts = `INSERT INTO attempt SELECT * FROM attempt_stage` + onAttemptConflict
	mergeActions  = `INSERT INTO action SELECT DISTINCT ON (month, source, seq, at, idx, what, person) * FROM action_stage
ORDER BY month, source, seq, at, idx, what, person, number DESC` + onActionConflict
	mergeUsage = `INSERT INTO usage SELECT * FROM usage_stage` + onUsageConflict
)

func (e *postgresEngine) begin(ctx context.Context) (rowSession, error) {
	if err := e.checkLock(ctx); err != nil {
		return nil, e.explain(err)
	}
	conn, err := e.write.Conn(ctx)
	if err != nil {
		return nil, e.explain(err)
	}
	s := &postgresSession{engine: e, conn: conn}
	if s.tx, err = conn.BeginTx(ctx, nil); err != nil {
		s.rollback()
		return nil, e.explain(err)
	}
	return s, nil
}

// keyArrays are the columns of keys, each as an array.
type keyArrays struct{ months, sources, seqs, indexes, attempts []int64 }

func (a *keyArrays) addJob(k jobKey) {
	a.months, a.sources, a.seqs = append(a.months, int64(k.month)), append(a.sources, k.source), append(a.seqs, k.seq)
}

func jobArrays(keys []jobKey) (a keyArrays) {
	for _, k := range keys {
		a.addJob(k)
	}
	return a
}

func attemptArrays(keys []attemptKey) (a keyArrays) {
	for _, k := range keys {
		a.addJob(k.jobKey)
		a.indexes, a.attempts = append(a.indexes, k.index), append(a.attempts, k.attempt)
	}
	return a
}

const (
	postgresJobNames = `SELECT j.month, j.source, j.seq, j.owner, j.grp, j.project, j.queue, j.band, j.eligible FROM job j
JOIN unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS k (month, source, seq) USING (month, source, seq)`
	postgresAttemptPlaces = `SELECT a.month, a.source, a.seq, a.idx, a.attempt, a.begins, a.ended FROM attempt a
JOIN unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[]) AS k (month, source, seq, idx, attempt)
USING (month, source, seq, idx, attempt)`
	postgresAttemptsOf = `SELECT a.month, a.source, a.seq, a.idx, a.attempt, a.begins, a.ended FROM attempt a
JOIN unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS k (month, source, seq) USING (month, source, seq)`
	postgresSetOwners = `UPDATE attempt a SET owner = k.owner
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) AS k (month, source, seq, owner)
WHERE a.month = k.month AND a.source = k.source AND a.seq = k.seq AND a.owner <> k.owner`
)

func (s *postgresSession) jobs(ctx context.Context, keys []jobKey) (map[jobKey]jobNames, error) {
	found, a := map[jobKey]jobNames{}, jobArrays(keys)
	err := queryAll(ctx, s.tx, func(rows *sql.Rows) error {
		var k jobKey
		var n jobNames
		err := rows.Scan(&k.month, &k.source, &k.seq, &n.owner, &n.group, &n.project, &n.queue, &n.band, &n.eligible)
		found[k] = n
		return err
	}, postgresJobNames, a.months, a.sources, a.seqs)
	return found, err
}

func scanPlaces(found map[attemptKey]placedAttempt) func(*sql.Rows) error {
	return func(rows *sql.Rows) error {
		var k attemptKey
		var p placedAttempt
		err := rows.Scan(&k.month, &k.source, &k.seq, &k.index, &k.attempt, &p.begin, &p.end)
		found[k] = p
		return err
	}
}

func (s *postgresSession) attempts(ctx context.Context, keys []attemptKey) (map[attemptKey]placedAttempt, error) {
	a := attemptArrays(keys)
	found := map[attemptKey]placedAttempt{}
	err := queryAll(ctx, s.tx, scanPlaces(found), postgresAttemptPlaces, a.months, a.sources, a.seqs, a.indexes,
		a.attempts)
	return found, err
}

func (s *postgresSession) attemptsOf(ctx context.Context, keys []jobKey) (map[attemptKey]placedAttempt, error) {
	found, a := map[attemptKey]placedAttempt{}, jobArrays(keys)
	err := queryAll(ctx, s.tx, scanPlaces(found), postgresAttemptsOf, a.months, a.sources, a.seqs)
	return found, err
}

func (s *postgresSession) setOwners(ctx context.Context, owners map[jobKey]int64) error {
	var a keyArrays
	var ids []int64
	for k, owner := range owners {
		a.addJob(k)
		ids = append(ids, owner)
	}
	_, err := s.tx.ExecContext(ctx, postgresSetOwners, a.months, a.sources, a.seqs, ids)
	return err
}

func (s *postgresSession) store(ctx context.Context, rows *rowSet) error {
	if err := s.addMonths(ctx, rows); err != nil {
		return err
	}
	var newJobs, newAttempts, jobs, attempts, actions, usage [][]any
	for _, r := range rows.jobs {
		appendRow(&newJobs, &jobs, r.isNew, r.values)
	}
	for _, r := range rows.attempts {
		appendRow(&newAttempts, &attempts, r.isNew, r.values)
	}
	for _, r := range rows.actions {
		actions = append(actions, r.values)
	}
	for _, r := range rows.usage {
		usage = append(usage, r.values)
	}
	for _, t := range []struct {
		table, columns, stage, merge string
		rows                         [][]any
	}{
		{"job", jobColumnsOnly, "", "", newJobs},
		{"attempt", attemptColumnsOnly, "", "", newAttempts},
		{"job_stage", jobColumnsOnly, stageJobs, mergeJobs, jobs},
		{"attempt_stage", attemptColumnsOnly, stageAttempts, mergeAttempts, attempts},
		{"action_stage", actionColumnsOnly, stageActions, mergeActions, actions},
		{"usage_stage", usageColumnsOnly, stageUsage, mergeUsage, usage},
	} {
		if len(t.rows) == 0 {
			continue
		}
		// the server truncates all temporary tables at each commit that touched one
		if t.stage != "" {
			if _, err := s.tx.ExecContext(ctx, t.stage); err != nil {
				return err
			}
		}
		if err := s.copyRows(ctx, t.table, t.columns, t.rows); err != nil {
			return err
		}
		if t.merge == "" {
			continue
		}
		if _, err := s.tx.ExecContext(ctx, t.merge); err != nil {
			return err
		}
	}
	return nil
}

func appendRow(fresh, others *[][]any, isNew bool, values []any) {
	if isNew {
		*fresh = append(*fresh, values)
	} else {
		*others = append(*others, values)
	}
}

// addMonths makes the partitions of the rows' months.
func (s *postgresSession) addMonths(ctx context.Context, rows *rowSet) error {
	months := map[accounting.Month]bool{}
	for _, r := range rows.jobs {
		months[r.month] = true
	}
	for _, r := range rows.attempts {
		months[r.month] = true
	}
	for _, r := range append(slices.Clone(rows.actions), rows.usage...) {
		months[r.month] = true
	}
	for _, m := range slices.Sorted(maps.Keys(months)) {
		s.engine.mu.Lock()
		made := s.engine.made[m]
		s.engine.mu.Unlock()
		if made {
			continue
		}
		if _, err := s.tx.ExecContext(ctx, addMonth, int64(m)); err != nil {
			return err
		}
		s.added = append(s.added, m)
	}
	return nil
}

const (
	jobColumnsOnly     = `SELECT * FROM job WHERE false`
	attemptColumnsOnly = `SELECT * FROM attempt WHERE false`
	actionColumnsOnly  = `SELECT * FROM action WHERE false`
	usageColumnsOnly   = `SELECT * FROM usage WHERE false`
)

// copyRows copies rows into a table, whose columns a query names.
func (s *postgresSession) copyRows(ctx context.Context, table, columns string, rows [][]any) error {
	result, err := s.tx.QueryContext(ctx, columns)
	if err != nil {
		return err
	}
	names, err := result.Columns()
	if err := errors.Join(err, result.Close()); err != nil {
		return err
	}
	return s.conn.Raw(func(driver any) error {
		conn, ok := driver.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("copy into %s: the driver is a %T", table, driver)
		}
		_, err := conn.Conn().CopyFrom(ctx, pgx.Identifier{table}, names, pgx.CopyFromRows(rows))
		return err
	})
}

func (s *postgresSession) commit(ctx context.Context, first, last func(*sql.Tx) error) error {
	failpoint.Point(failpoint.AccountantBeforeMarks)
	for _, f := range []func(*sql.Tx) error{first, last} {
		if err := f(s.tx); err != nil {
			return s.engine.explain(err)
		}
	}
	failpoint.Point(failpoint.AccountantAfterMonth)
	if err := s.tx.Commit(); err != nil {
		return s.engine.explain(err)
	}
	s.tx = nil
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	for _, m := range s.added {
		s.engine.made[m] = true
	}
	failpoint.Point(failpoint.AccountantAfterNumber)
	return nil
}

func (s *postgresSession) rollback() {
	if s.tx != nil {
		s.tx.Rollback()
		s.tx = nil
	}
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}
