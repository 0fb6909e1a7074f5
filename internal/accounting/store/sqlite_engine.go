package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// sqliteEngine is a directory with the file main.db and a file for each month.
type sqliteEngine struct {
	dir  string
	lock *os.File
	main *sqliteFile

	mu    sync.Mutex
	files map[accounting.Month]*sqliteFile // that are open
}

func openSQLiteEngine(ctx context.Context, dir string) (e *sqliteEngine, err error) {
	e = &sqliteEngine{dir: dir, files: map[accounting.Month]*sqliteFile{}}
	defer func() {
		if err != nil {
			e.close()
		}
	}()
	if e.lock, err = openSQLiteLock(dir); err != nil {
		return e, err
	}
	e.main, err = openFile(ctx, filepath.Join(dir, "main.db"), mainSchema())
	return e, err
}

// openSQLiteLock makes the directory of a store if it is not there. It keeps other
// accountants off until the file is closed.
func openSQLiteLock(dir string) (lock *os.File, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if lock, err = os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("%s: %w: another accountant uses it", dir, roost.Conflict)
	}
	return lock, nil
}

func (e *sqliteEngine) reader() *sql.DB { return e.main.read }
func (e *sqliteEngine) writer() *sql.DB { return e.main.write }

func (e *sqliteEngine) monthPath(m accounting.Month) string {
	return filepath.Join(e.dir, "month-"+m.String()+".db")
}

// file returns the file of a month, which it makes if create is set. Without, the file is
// nil if there is none.
func (e *sqliteEngine) file(ctx context.Context, m accounting.Month, create bool) (*sqliteFile, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if f, ok := e.files[m]; ok {
		return f, nil
	}
	path := e.monthPath(m)
	if !create {
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
	}
	f, err := openFile(ctx, path, monthSchema())
	if err != nil {
		return nil, err
	}
	e.files[m] = f
	return f, nil
}

func (e *sqliteEngine) months(context.Context) ([]accounting.Month, error) {
	paths, err := filepath.Glob(filepath.Join(e.dir, "month-*.db"))
	var months []accounting.Month
	for _, path := range paths {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), "month-"), ".db")
		if m, err := accounting.ParseMonth(name); err == nil {
			months = append(months, m)
		}
	}
	slices.Sort(months)
	return months, err
}

func (e *sqliteEngine) partitions(ctx context.Context, first, last accounting.Month) ([]partition, error) {
	months, err := e.months(ctx)
	if err != nil {
		return nil, err
	}
	var all []partition
	for _, m := range months {
		if m < first || last != 0 && m > last {
			continue
		}
		f, err := e.file(ctx, m, false)
		if err != nil {
			return nil, err
		}
		if f != nil {
			all = append(all, partition{f.path, f.read})
		}
	}
	return all, nil
}

func (e *sqliteEngine) explain(err error) error { return e.main.explain(err) }

func (e *sqliteEngine) dropMonth(_ context.Context, m accounting.Month) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if f, ok := e.files[m]; ok {
		delete(e.files, m)
		if err := f.close(); err != nil {
			return err
		}
	}
	for _, suffix := range []string{"-wal", "-shm", ""} {
		if err := os.Remove(e.monthPath(m) + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (e *sqliteEngine) purge(ctx context.Context, text string, before accounting.Millis) error {
	months, err := e.months(ctx)
	if err != nil {
		return err
	}
	for _, m := range months {
		f, err := e.file(ctx, m, false)
		if err != nil {
			return err
		}
		if f == nil {
			continue
		}
		if _, err := f.write.ExecContext(ctx, text, int64(before)); err != nil {
			return f.explain(err)
		}
	}
	return nil
}

func (e *sqliteEngine) check(ctx context.Context) error {
	errs := []error{e.main.check(ctx)}
	months, err := e.months(ctx)
	errs = append(errs, err)
	for _, m := range months {
		f, err := e.file(ctx, m, false)
		if err == nil && f != nil {
			err = f.check(ctx)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (e *sqliteEngine) close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var errs []error
	for _, f := range e.files {
		errs = append(errs, f.close())
	}
	if e.main != nil {
		errs = append(errs, e.main.close())
	}
	if e.lock != nil {
		errs = append(errs, e.lock.Close())
	}
	return errors.Join(errs...)
}
