package store

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
)

// rowQuery is a query of rows of type T in some order.
type rowQuery[T any] struct {
	text string
	args []any
	scan func(*sql.Rows) (T, error)
}

// rows runs the query on one database.
func (q rowQuery[T]) rows(ctx context.Context, db *sql.DB) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		rows, err := db.QueryContext(ctx, q.text, q.args...)
		if err != nil {
			yield(zero, err)
			return
		}
		defer rows.Close()
		for rows.Next() {
			row, err := q.scan(rows)
			if !yield(row, err) || err != nil {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(zero, err)
		}
	}
}

// mergeSource is one of the sources of mergeRows.
type mergeSource[T any] struct {
	part partition
	row  T
	next func() (T, error, bool)
}

// mergeRows runs a query on each partition and merges the rows in the order of before.
// There are at most some forty partitions, so the least row is found by looking at all.
func mergeRows[T any](ctx context.Context, parts []partition, q rowQuery[T], before func(a, b *T) bool) iter.Seq2[T,
	error] {
	return func(yield func(T, error) bool) {
		var sources []*mergeSource[T]
		var zero T
		for _, p := range parts {
			next, stop := iter.Pull2(q.rows(ctx, p.db))
			defer stop()
			s := &mergeSource[T]{part: p, next: next}
			ok, err := s.advance()
			if err != nil {
				yield(zero, err)
				return
			}
			if ok {
				sources = append(sources, s)
			}
		}
		for len(sources) > 0 {
			least := 0
			for i := range sources {
				if before(&sources[i].row, &sources[least].row) {
					least = i
				}
			}
			if !yield(sources[least].row, nil) {
				return
			}
			ok, err := sources[least].advance()
			if err != nil {
				yield(zero, err)
				return
			}
			if !ok {
				sources = append(sources[:least], sources[least+1:]...)
			}
		}
	}
}

// advance reads the next row.
func (s *mergeSource[T]) advance() (ok bool, err error) {
	s.row, err, ok = s.next()
	if err != nil {
		return false, fmt.Errorf("%s: %w", s.part.name, err)
	}
	return ok, nil
}
