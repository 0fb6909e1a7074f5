package store

import (
	"context"
	"database/sql"
)

// SQLite runs a prepared statement for each row, which costs no round trip.

func (e *sqliteEngine) insertRows(ctx context.Context, tx *sql.Tx, insert numberInsert, rows [][]int64) error {
	if len(rows) == 0 {
		return nil
	}
	statement, err := tx.PrepareContext(ctx, insert.single)
	if err != nil {
		return err
	}
	defer statement.Close()
	args := make([]any, len(rows[0]))
	for _, row := range rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		for i, v := range row {
			args[i] = v
		}
		if _, err := statement.ExecContext(uncancelled(ctx), args...); err != nil {
			return err
		}
	}
	return nil
}

func (e *sqliteEngine) queryKeys(ctx context.Context, db preparer, q keyQuery, keys []attemptKey,
	scan func(*sql.Rows) error) error {
	statement, err := db.PrepareContext(ctx, q.single)
	if err != nil {
		return err
	}
	defer statement.Close()
	for _, k := range keys {
		if err := ctx.Err(); err != nil {
			return err
		}
		rows, err := statement.QueryContext(uncancelled(ctx), int64(k.month), k.source, k.seq, k.index, k.attempt)
		if err != nil {
			return err
		}
		if err := scanAll(rows, scan); err != nil {
			return err
		}
	}
	return nil
}

func scanAll(rows *sql.Rows, scan func(*sql.Rows) error) error {
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

const sqliteRemoveDue = `DELETE FROM due
WHERE month = $1 AND source = $2 AND seq = $3 AND idx = $4 AND attempt = $5 AND mark = $6`

func (e *sqliteEngine) removeDue(ctx context.Context, tx *sql.Tx, due []dueCharge) error {
	statement, err := tx.PrepareContext(ctx, sqliteRemoveDue)
	if err != nil {
		return err
	}
	defer statement.Close()
	for _, d := range due {
		_, err := statement.ExecContext(uncancelled(ctx), int64(d.month), d.source, d.seq, d.index, d.attempt, d.mark)
		if err != nil {
			return err
		}
	}
	return nil
}

// PostgreSQL gets all rows in one statement, because each statement is a round trip.

func (e *postgresEngine) insertRows(ctx context.Context, tx *sql.Tx, insert numberInsert, rows [][]int64) error {
	if len(rows) == 0 {
		return nil
	}
	columns := make([]any, len(rows[0]))
	for i := range columns {
		column := make([]int64, len(rows))
		for j, row := range rows {
			column[j] = row[i]
		}
		columns[i] = column
	}
	_, err := tx.ExecContext(ctx, insert.arrays, columns...)
	return err
}

func (e *postgresEngine) queryKeys(ctx context.Context, db preparer, q keyQuery, keys []attemptKey,
	scan func(*sql.Rows) error) error {
	a := attemptArrays(keys)
	return queryAll(ctx, db, scan, q.arrays, a.months, a.sources, a.seqs, a.indexes, a.attempts)
}

const postgresRemoveDue = `DELETE FROM due d
USING unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[])
 AS k (month, source, seq, idx, attempt, mark)
WHERE d.month = k.month AND d.source = k.source AND d.seq = k.seq AND d.idx = k.idx AND d.attempt = k.attempt
 AND d.mark = k.mark`

func (e *postgresEngine) removeDue(ctx context.Context, tx *sql.Tx, due []dueCharge) error {
	var keys []attemptKey
	var marks []int64
	for _, d := range due {
		keys, marks = append(keys, d.attemptKey), append(marks, d.mark)
	}
	a := attemptArrays(keys)
	_, err := tx.ExecContext(ctx, postgresRemoveDue, a.months, a.sources, a.seqs, a.indexes, a.attempts, marks)
	return err
}
