package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
)

// Size returns the size of the database in bytes.
func (s *Store) Size(ctx context.Context) (int64, error) { return s.engine.size(ctx) }

// size sums up the files of the directory. One that vanishes meanwhile does not count.
func (e *sqliteEngine) size(context.Context) (n int64, err error) {
	files, err := os.ReadDir(e.dir)
	if err != nil {
		return 0, err
	}
	for _, f := range files {
		info, err := f.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		if info.Mode().IsRegular() {
			n += info.Size()
		}
	}
	return n, nil
}

const databaseSize = `SELECT pg_database_size(current_database())`

func (e *postgresEngine) size(ctx context.Context) (n int64, err error) {
	err = e.read.QueryRowContext(ctx, databaseSize).Scan(&n)
	return n, e.explain(err)
}
