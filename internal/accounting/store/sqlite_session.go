package store

import (
	"context"
	"database/sql"
	"maps"
	"slices"

	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/failpoint"
)

// sqliteSession has a transaction on the file of each month that is written.
type sqliteSession struct {
	engine *sqliteEngine
	months map[accounting.Month]*monthTx
}

// monthTx is a transaction on the file of a month.
type monthTx struct {
	*sql.Tx
	file       *sqliteFile
	statements map[string]*sql.Stmt
}

func (e *sqliteEngine) begin(context.Context) (rowSession, error) {
	return &sqliteSession{e, map[accounting.Month]*monthTx{}}, nil
}

func (s *sqliteSession) month(ctx context.Context, m accounting.Month) (*monthTx, error) {
	if tx, ok := s.months[m]; ok {
		return tx, nil
	}
	f, err := s.engine.file(ctx, m, true)
	if err != nil {
		return nil, err
	}
	tx, err := f.write.BeginTx(uncancelled(ctx), nil)
	if err != nil {
		return nil, f.explain(err)
	}
	s.months[m] = &monthTx{tx, f, map[string]*sql.Stmt{}}
	return s.months[m], nil
}

// statement prepares a statement once for the transaction.
func (tx *monthTx) statement(ctx context.Context, text string) (*sql.Stmt, error) {
	if s, ok := tx.statements[text]; ok {
		return s, nil
	}
	s, err := tx.PrepareContext(uncancelled(ctx), text)
	if err == nil {
		tx.statements[text] = s
	}
	return s, tx.file.explain(err)
}

// uncancelled returns a context for one of many short statements. With one that can be
// cancelled each statement starts goroutines that wait for it, which takes as long as the
// statement. The caller looks at its own context between statements.
func uncancelled(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }

// exec runs a statement of a month.
func (s *sqliteSession) exec(ctx context.Context, m accounting.Month, text string, args ...any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	tx, err := s.month(ctx, m)
	if err != nil {
		return err
	}
	statement, err := tx.statement(ctx, text)
	if err != nil {
		return err
	}
	_, err = statement.ExecContext(uncancelled(ctx), args...)
	return tx.file.explain(err)
}

// query calls scan for each row.
func (s *sqliteSession) query(ctx context.Context, m accounting.Month, text string, scan func(*sql.Rows) error,
	args ...any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	tx, err := s.month(ctx, m)
	if err != nil {
		return err
	}
	statement, err := tx.statement(ctx, text)
	if err != nil {
		return err
	}
	rows, err := statement.QueryContext(uncancelled(ctx), args...)
	if err != nil {
		return tx.file.explain(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return tx.file.explain(err)
		}
	}
	return tx.file.explain(rows.Err())
}

const (
	sqliteJobNames = `SELECT owner, grp, project, queue, band, eligible FROM job
WHERE month = $1 AND source = $2 AND seq = $3`
	sqliteAttemptPlace = `SELECT begins, ended FROM attempt
WHERE month = $1 AND source = $2 AND seq = $3 AND idx = $4 AND attempt = $5`
	sqliteAttemptsOf = `SELECT idx, attempt, begins, ended FROM attempt WHERE month = $1 AND source = $2 AND seq = $3`
	sqliteSetOwner   = `UPDATE attempt SET owner = $1 WHERE month = $2 AND source = $3 AND seq = $4 AND owner <> $1`
)

func (s *sqliteSession) jobs(ctx context.Context, keys []jobKey) (map[jobKey]jobNames, error) {
	found := map[jobKey]jobNames{}
	for _, k := range keys {
		err := s.query(ctx, k.month, sqliteJobNames, func(rows *sql.Rows) error {
			var n jobNames
			err := rows.Scan(&n.owner, &n.group, &n.project, &n.queue, &n.band, &n.eligible)
			found[k] = n
			return err
		}, int64(k.month), k.source, k.seq)
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

func (s *sqliteSession) attempts(ctx context.Context, keys []attemptKey) (map[attemptKey]placedAttempt, error) {
	found := map[attemptKey]placedAttempt{}
	for _, k := range keys {
		err := s.query(ctx, k.month, sqliteAttemptPlace, func(rows *sql.Rows) error {
			var p placedAttempt
			err := rows.Scan(&p.begin, &p.end)
			found[k] = p
			return err
		}, int64(k.month), k.source, k.seq, k.index, k.attempt)
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

func (s *sqliteSession) attemptsOf(ctx context.Context, keys []jobKey) (map[attemptKey]placedAttempt, error) {
	found := map[attemptKey]placedAttempt{}
	for _, k := range keys {
		err := s.query(ctx, k.month, sqliteAttemptsOf, func(rows *sql.Rows) error {
			key, p := attemptKey{jobKey: k}, placedAttempt{}
			err := rows.Scan(&key.index, &key.attempt, &p.begin, &p.end)
			found[key] = p
			return err
		}, int64(k.month), k.source, k.seq)
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

func (s *sqliteSession) setOwners(ctx context.Context, owners map[jobKey]int64) error {
	for k, owner := range owners {
		if err := s.exec(ctx, k.month, sqliteSetOwner, owner, int64(k.month), k.source, k.seq); err != nil {
			return err
		}
	}
	return nil
}

func (s *sqliteSession) store(ctx context.Context, rows *rowSet) error {
	for _, r := range rows.jobs {
		if err := s.exec(ctx, r.month, upsertJob, r.values...); err != nil {
			return err
		}
	}
	for _, r := range rows.attempts {
		if err := s.exec(ctx, r.month, upsertAttempt, r.values...); err != nil {
			return err
		}
	}
	for _, r := range rows.actions {
		if err := s.exec(ctx, r.month, upsertAction, r.values...); err != nil {
			return err
		}
	}
	for _, r := range rows.usage {
		if err := s.exec(ctx, r.month, upsertUsage, r.values...); err != nil {
			return err
		}
	}
	return nil
}

// commit commits the marks, then each month, then the marks again with the number.
func (s *sqliteSession) commit(ctx context.Context, first, last func(*sql.Tx) error) error {
	failpoint.Point(failpoint.AccountantBeforeMarks)
	if err := s.engine.mainTx(ctx, first); err != nil {
		return err
	}
	failpoint.Point(failpoint.AccountantAfterMarks)
	for _, m := range slices.Sorted(maps.Keys(s.months)) {
		tx := s.months[m]
		if err := tx.Commit(); err != nil {
			return tx.file.explain(err)
		}
		delete(s.months, m)
		failpoint.Point(failpoint.AccountantAfterMonth)
	}
	if err := s.engine.mainTx(ctx, last); err != nil {
		return err
	}
	failpoint.Point(failpoint.AccountantAfterNumber)
	return nil
}

// mainTx runs f in a transaction on main.db.
func (e *sqliteEngine) mainTx(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := e.main.write.BeginTx(ctx, nil)
	if err != nil {
		return e.explain(err)
	}
	if err := f(tx); err != nil {
		tx.Rollback()
		return e.explain(err)
	}
	return e.explain(tx.Commit())
}

func (s *sqliteSession) rollback() {
	for _, tx := range s.months {
		tx.Rollback()
	}
	clear(s.months)
}
