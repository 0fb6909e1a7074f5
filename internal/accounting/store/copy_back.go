package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// unfinishedDirectory is where CopyBack writes, below the directory of the store. Files
// leave it when all of them are whole, main.db last.
const unfinishedDirectory = "copy.new"

// CopyBack copies a PostgreSQL store into SQLite files in a directory that has none,
// while no accountant uses either. It calls done with each part. What a copy that fails
// or is killed leaves behind is no store, and the next copy removes it. Every row is read
// back and compared.
func CopyBack(ctx context.Context, o Options, done func(CopiedPart)) error {
	from, err := openPostgresEngine(ctx, o.Postgres)
	if err != nil {
		return fmt.Errorf("accounting store: %w", err)
	}
	defer from.close()
	lock, err := openSQLiteLock(o.Directory)
	if err != nil {
		return fmt.Errorf("accounting store: %w", err)
	}
	defer lock.Close()
	unfinished := filepath.Join(o.Directory, unfinishedDirectory)
	if err := prepareCopyBack(o.Directory, unfinished); err != nil {
		return fmt.Errorf("accounting store %s: %w", o.Directory, err)
	}
	to, err := openSQLiteEngine(ctx, unfinished)
	if err != nil {
		return fmt.Errorf("accounting store: %w", err)
	}
	err = (&backCopy{from, to}).run(ctx, done)
	if err = errors.Join(err, to.close()); err != nil {
		return fmt.Errorf("copy of %s: %w", from.name, err)
	}
	return moveStore(unfinished, o.Directory)
}

// storeFiles are the files of the months and the main file of a directory, in this order.
func storeFiles(dir string) (files []string, err error) {
	files, err = filepath.Glob(filepath.Join(dir, "month-*.db"))
	if _, serr := os.Stat(filepath.Join(dir, "main.db")); serr == nil {
		files = append(files, filepath.Join(dir, "main.db"))
	} else if !errors.Is(serr, fs.ErrNotExist) {
		err = errors.Join(err, serr)
	}
	return files, err
}

// prepareCopyBack refuses a directory with a store. It removes what an earlier copy has
// left that did not come to its end.
func prepareCopyBack(dir, unfinished string) error {
	files, err := storeFiles(dir)
	if err != nil {
		return err
	}
	_, err = os.Stat(unfinished)
	isWhole := len(files) > 0 && filepath.Base(files[len(files)-1]) == "main.db"
	if isWhole || len(files) > 0 && err != nil {
		return fmt.Errorf("%w: it has accounts already: move %s away, or name another directory", roost.Conflict,
			files[len(files)-1])
	}
	for _, name := range files {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	return os.RemoveAll(unfinished)
}

// moveStore moves the files of a finished copy to where the accountant looks for them.
func moveStore(unfinished, dir string) error {
	files, err := storeFiles(unfinished)
	if err != nil {
		return err
	}
	for _, name := range files {
		if err := os.Rename(name, filepath.Join(dir, filepath.Base(name))); err != nil {
			return err
		}
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return err
	}
	return os.RemoveAll(unfinished)
}

// backCopy is a copy from PostgreSQL into SQLite files.
type backCopy struct {
	from *postgresEngine
	to   *sqliteEngine
}

func (c *backCopy) run(ctx context.Context, done func(CopiedPart)) error {
	months, err := c.from.months(ctx)
	if err != nil {
		return err
	}
	slices.Sort(months)
	for _, m := range append([]accounting.Month{0}, months...) {
		part, err := c.copyPart(ctx, m)
		if err != nil {
			return err
		}
		done(part)
	}
	return nil
}

// copyPart copies the tables of a month into its file, or with 0 those of the main file.
func (c *backCopy) copyPart(ctx context.Context, m accounting.Month) (part CopiedPart, err error) {
	file, tables, args := c.to.main, mainTables(), []any{}
	if m != 0 {
		if file, err = c.to.file(ctx, m, true); err != nil {
			return part, err
		}
		tables, args = monthTables(), []any{int64(m)}
	}
	tx, err := file.write.BeginTx(ctx, nil)
	if err != nil {
		return part, file.explain(err)
	}
	defer tx.Rollback()
	var total digestSum
	for _, t := range tables {
		sent, err := c.copyTable(ctx, tx, t, args)
		if err != nil {
			return part, fmt.Errorf("table %s: %w", t.name, c.from.explain(file.explain(err)))
		}
		stored, err := digestRows(ctx, tx, t, args)
		if err != nil {
			return part, fmt.Errorf("table %s: %w", t.name, file.explain(err))
		}
		if sent != stored {
			return part, fmt.Errorf("table %s: %w: %s has rows with the digest %v, and %v was sent", t.name,
				roost.Internal, file.path, stored, sent)
		}
		total.addSum(sent)
	}
	if err := tx.Commit(); err != nil {
		return part, file.explain(err)
	}
	return CopiedPart{Month: m, Rows: total.count, Digest: strings.Fields(total.String())[1]}, nil
}

// copyTable copies the rows of a query, and returns their digest. The columns of the two
// databases may be in another order.
func (c *backCopy) copyTable(ctx context.Context, tx *sql.Tx, t copiedTable, args []any) (digest digestSum,
	err error) {
	empty, err := openRows(ctx, tx, t, args)
	if err != nil {
		return digest, err
	}
	order := empty.names
	empty.rows.Close()
	source, err := openRows(ctx, c.from.read, t, args)
	if err != nil {
		return digest, err
	}
	defer source.rows.Close()
	text := rowInserts()[t.name]
	statement, err := tx.PrepareContext(ctx, text)
	if err != nil {
		return digest, err
	}
	defer statement.Close()
	at := make([]int, len(order))
	for i, name := range order {
		if at[i] = slices.Index(source.names, name); at[i] < 0 || len(order) != len(source.names) {
			return digest, fmt.Errorf("%w: its columns are %v here and %v there", roost.Internal, source.names, order)
		}
	}
	row := make([]any, len(order))
	for source.Next() {
		values, err := source.Values()
		if err != nil {
			return digest, err
		}
		for i, from := range at {
			row[i] = values[from]
		}
		if _, err := statement.ExecContext(uncancelled(ctx), row...); err != nil {
			return digest, err
		}
		if err := ctx.Err(); err != nil {
			return digest, err
		}
	}
	return source.digest, source.Err()
}
