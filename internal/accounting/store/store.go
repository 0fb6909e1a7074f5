package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/roost-batch/roost/internal/accounting"
)

// Options say where a store is. Postgres wins over Directory.
type Options struct {
	Directory string // of the SQLite files; made if it does not exist
	Postgres  string // a connection string: "postgres://user@host/database" or "host=… dbname=…"
}

// Store is the accounting of a pool. Its methods may be called by many goroutines; those
// that write wait for each other.
type Store struct {
	engine  engine
	names   nameTable
	classes machineClasses
	summed  summedMonths

	mu      sync.Mutex // of those that write
	stale   bool       // a write failed: what is in memory may be older than the database
	sources sourceTable
	looked  bool              // for months without sums
	mark    int64             // the last mark
	rolled  accounting.Millis // hours are marked up to here as time passes; 0: never yet
	frozen  accounting.Millis // hours before are never computed again

	machines machineCache
}

// Open opens a store, and makes it if it does not exist. It brings its schema to the
// version of this program, and refuses one that a newer release has written. ctx is for
// opening alone.
func Open(ctx context.Context, o Options) (s *Store, err error) {
	var e engine
	if o.Postgres != "" {
		e, err = openPostgresEngine(ctx, o.Postgres)
	} else {
		e, err = openSQLiteEngine(ctx, o.Directory)
	}
	if err != nil {
		return nil, fmt.Errorf("accounting store: %w", err)
	}
	s = &Store{engine: e, stale: true}
	err = s.refresh(ctx)
	if err == nil { // a store of schema 1 has no digests
		err = s.inPermanentTx(ctx, func(*sql.Tx) error { return nil })
	}
	if err != nil {
		e.close()
		return nil, fmt.Errorf("accounting store: %w", e.explain(err))
	}
	return s, nil
}

const (
	selectCounter = `SELECT coalesce(max(value), 0) FROM counter WHERE name = $1`
	upsertCounter = `INSERT INTO counter (name, value) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET value = excluded.value`
)

// refresh reads what the store has in memory, if a write failed since the last time. One
// of several commits may have been done, or a commit whose answer was lost. The caller
// holds s.mu.
func (s *Store) refresh(ctx context.Context) error {
	if !s.stale {
		return nil
	}
	err := s.load(ctx)
	s.stale = err != nil
	return err
}

func (s *Store) load(ctx context.Context) error {
	s.machines = machineCache{}
	db := s.engine.reader()
	if err := s.names.load(ctx, db); err != nil {
		return err
	}
	if err := s.classes.load(ctx, db); err != nil {
		return err
	}
	if err := s.sources.load(ctx, db); err != nil {
		return err
	}
	if err := s.summed.load(ctx, db); err != nil {
		return err
	}
	var mark int64
	if err := db.QueryRowContext(ctx, selectCounter, "mark").Scan(&mark); err != nil {
		return err
	}
	s.mark = max(s.mark, mark)
	if err := db.QueryRowContext(ctx, selectCounter, "rolled").Scan(&s.rolled); err != nil {
		return err
	}
	return db.QueryRowContext(ctx, selectCounter, "frozen").Scan(&s.frozen)
}

// Close closes the store. Readers that are in use end with errors.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.engine.close()
}

// Check reads the whole store, and returns an error that names each part that is damaged.
func (s *Store) Check(ctx context.Context) error {
	return errors.Join(s.engine.check(ctx), s.Verify(ctx), s.checkSums(ctx))
}

// inTx runs f in a transaction on the ordinary tables. The caller holds s.mu.
func (s *Store) inTx(ctx context.Context, f func(*sql.Tx) error) error {
	if err := s.refresh(ctx); err != nil {
		return s.engine.explain(err)
	}
	tx, err := s.engine.writer().BeginTx(ctx, nil)
	if err != nil {
		return s.engine.explain(err)
	}
	if err := f(tx); err != nil {
		s.stale = true
		tx.Rollback()
		return s.engine.explain(err)
	}
	err = tx.Commit()
	s.stale = err != nil
	return s.engine.explain(err)
}

// queryAll calls scan for each row of a query.
func queryAll(ctx context.Context, db querier, scan func(*sql.Rows) error, text string, args ...any) error {
	rows, err := db.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}
