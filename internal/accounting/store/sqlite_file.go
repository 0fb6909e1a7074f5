package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/roost-batch/roost"
)

// maxFileReaders bounds the connections that read one file. It is well above the readers
// that there may be, because one that reads attempts for each of its jobs takes two.
const maxFileReaders = 64

// sqliteFile is one SQLite database with a connection that writes and some that read.
type sqliteFile struct {
	path        string
	write, read *sql.DB
}

// openFile opens a file, and makes it if it does not exist. synchronous=FULL, because
// with NORMAL a power failure could lose rows of one file and keep the number of another.
func openFile(ctx context.Context, path string, s schema) (f *sqliteFile, err error) {
	f = &sqliteFile{path: path}
	defer func() {
		if err != nil {
			f.close()
			err = f.explain(err)
		}
	}()
	if f.write, err = openSQLite(path, "_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"+
		"&_pragma=busy_timeout(30000)&_pragma=cache_size(-16000)&_pragma=wal_autocheckpoint(4000)"); err != nil {
		return f, err
	}
	f.write.SetMaxOpenConns(1)
	if err := s.migrate(ctx, f.write); err != nil {
		return f, err
	}
	if f.read, err = openSQLite(path,
		"_pragma=query_only(1)&_pragma=busy_timeout(30000)&_pragma=cache_size(-8000)"); err != nil {
		return f, err
	}
	f.read.SetMaxOpenConns(maxFileReaders)
	f.read.SetMaxIdleConns(2)
	return f, nil
}

func openSQLite(path, options string) (*sql.DB, error) {
	connector, err := sqlite.NewConnector((&url.URL{Scheme: "file", Opaque: url.PathEscape(path),
		RawQuery: options}).String())
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

func (f *sqliteFile) close() error {
	var errs []error
	for _, db := range []*sql.DB{f.read, f.write} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

// explain names the file in an error of SQLite.
func (f *sqliteFile) explain(err error) error {
	var e *sqlite.Error
	if err == nil || !errors.As(err, &e) {
		return err
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%s is damaged: %w: move it away and restore a copy, or leave it out: what it had is "+
			"rebuilt from the schedds' histories as far as they go", f.path, err)
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR:
		return fmt.Errorf("%s: %w: %w: make space on its file system; nothing is lost, the schedds wait", f.path,
			roost.Exhausted, err)
	}
	return fmt.Errorf("%s: %w", f.path, err)
}

// check reads the whole file.
func (f *sqliteFile) check(ctx context.Context) error {
	var result string
	err := f.read.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&result)
	if err == nil && result != "ok" {
		err = fmt.Errorf("%s is damaged: %s", f.path, result)
	}
	return f.explain(err)
}
