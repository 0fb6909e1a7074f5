package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// CopiedPart is a part of a store that was copied, and compared with what was read back.
type CopiedPart struct {
	Month  accounting.Month `json:"-"` // of the jobs; 0: names, sums, charges and what administrators made
	Rows   int64            `json:"rows"`
	Digest string           `json:"digest"` // of its rows in any order
}

// copiedTable is a table that both databases have, and the query for its rows. Those of
// jobs are asked for by month.
type copiedTable struct{ name, text string }

// The rows of each table. They are the same statements for both databases.
const (
	allSources     = `SELECT * FROM source`
	allGaps        = `SELECT * FROM gap`
	allNames       = `SELECT * FROM name`
	allMonths      = `SELECT * FROM month`
	allCounters    = `SELECT * FROM counter`
	allDirty       = `SELECT * FROM dirty`
	allDue         = `SELECT * FROM due`
	allMachines    = `SELECT * FROM machine`
	allUsageSums   = `SELECT * FROM rollup`
	allEnds        = `SELECT * FROM rollup_end`
	allWaits       = `SELECT * FROM rollup_wait`
	allSizes       = `SELECT * FROM rollup_size`
	allCapacity    = `SELECT * FROM rollup_capacity`
	allRates       = `SELECT * FROM rate`
	allCharges     = `SELECT * FROM charge`
	allChargeSums  = `SELECT * FROM charge_sum`
	allAdjustments = `SELECT * FROM adjustment`
	allBudgets     = `SELECT * FROM budget`
	allDays        = `SELECT * FROM reconciliation`
	allDigests     = `SELECT * FROM row_digest`
	allSummed      = `SELECT * FROM summed_month`
	allSamples     = `SELECT * FROM ledger_sample`
	allLedgerUse   = `SELECT * FROM ledger_use`
	allComparisons = `SELECT * FROM ledger_comparison`
	allClasses     = `SELECT * FROM machine_class`

	monthJobs     = `SELECT * FROM job WHERE month = $1`
	monthAttempts = `SELECT * FROM attempt WHERE month = $1`
	monthActions  = `SELECT * FROM action WHERE month = $1`
	monthUsage    = `SELECT * FROM usage WHERE month = $1`

	// a database in which an accountant has stored nothing yet
	anyRows = `SELECT EXISTS (SELECT 1 FROM source) OR EXISTS (SELECT 1 FROM name) OR EXISTS (SELECT 1 FROM machine)
 OR EXISTS (SELECT 1 FROM rate) OR EXISTS (SELECT 1 FROM budget) OR EXISTS (SELECT 1 FROM adjustment)
 OR EXISTS (SELECT 1 FROM month) OR EXISTS (SELECT 1 FROM job)`
	clearCounters = `DELETE FROM counter`
	analyzeAll    = `ANALYZE`
)

func mainTables() []copiedTable {
	return []copiedTable{
		{"source", allSources}, {"gap", allGaps}, {"name", allNames}, {"month", allMonths}, {"counter", allCounters},
		{"dirty", allDirty}, {"due", allDue}, {"machine", allMachines}, {"rollup", allUsageSums},
		{"rollup_end", allEnds}, {"rollup_wait", allWaits}, {"rollup_size", allSizes},
		{"rollup_capacity", allCapacity}, {"rate", allRates}, {"charge", allCharges}, {"charge_sum", allChargeSums},
		{"adjustment", allAdjustments}, {"budget", allBudgets}, {"reconciliation", allDays},
		{"row_digest", allDigests}, {"summed_month", allSummed}, {"ledger_sample", allSamples},
		{"ledger_use", allLedgerUse}, {"ledger_comparison", allComparisons}, {"machine_class", allClasses},
	}
}

func monthTables() []copiedTable {
	return []copiedTable{{"job", monthJobs}, {"attempt", monthAttempts}, {"action", monthActions},
		{"usage", monthUsage}}
}

// Copy copies the SQLite store of a directory into a PostgreSQL database that is empty,
// while no accountant uses either. It calls done with each part. All of it is one
// transaction: what a copy that fails or is killed leaves behind is an empty database.
// Every row is read back and compared before the end of the transaction.
func Copy(ctx context.Context, o Options, done func(CopiedPart)) error {
	if _, err := os.Stat(filepath.Join(o.Directory, "main.db")); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("accounting store %s: %w: there is no main.db", o.Directory, roost.NotFound)
	}
	from, err := openSQLiteEngine(ctx, o.Directory)
	if err != nil {
		return fmt.Errorf("accounting store: %w", err)
	}
	defer from.close()
	to, err := openPostgresEngine(ctx, o.Postgres)
	if err != nil {
		return fmt.Errorf("accounting store: %w", err)
	}
	defer to.close()
	c := storeCopy{from: from, to: to}
	if err := c.run(ctx, done); err != nil {
		return fmt.Errorf("copy of %s: %w", o.Directory, err)
	}
	_, err = to.write.ExecContext(ctx, analyzeAll) // it plans badly until it has statistics
	return to.explain(err)
}

// storeCopy is a copy between two databases.
type storeCopy struct {
	from    *sqliteEngine
	to      *postgresEngine
	session *postgresSession
}

func (c *storeCopy) run(ctx context.Context, done func(CopiedPart)) error {
	months, err := c.from.months(ctx)
	if err != nil {
		return c.from.explain(err)
	}
	session, err := c.to.begin(ctx)
	if err != nil {
		return err
	}
	c.session = session.(*postgresSession)
	defer c.session.rollback()
	if err := c.requireEmpty(ctx); err != nil {
		return err
	}
	for _, m := range months {
		if _, err := c.session.tx.ExecContext(ctx, addMonth, int64(m)); err != nil {
			return c.to.explain(err)
		}
	}
	for _, m := range append([]accounting.Month{0}, months...) {
		part, err := c.copyPart(ctx, m)
		if err != nil {
			return err
		}
		done(part)
	}
	nothing := func(*sql.Tx) error { return nil }
	return c.session.commit(ctx, nothing, nothing)
}

// requireEmpty fails if the database has accounts. An accountant that has only opened it
// has left counters.
func (c *storeCopy) requireEmpty(ctx context.Context) error {
	var any bool
	if err := c.session.tx.QueryRowContext(ctx, anyRows).Scan(&any); err != nil {
		return c.to.explain(err)
	}
	if any {
		return fmt.Errorf("%s: %w: it has accounts already: make an empty database", c.to.name, roost.Conflict)
	}
	_, err := c.session.tx.ExecContext(ctx, clearCounters)
	return c.to.explain(err)
}

// copyPart copies the tables of a month, or with 0 those of the main file.
func (c *storeCopy) copyPart(ctx context.Context, m accounting.Month) (part CopiedPart, err error) {
	db, tables, args := c.from.main.read, mainTables(), []any{}
	if m != 0 {
		f, err := c.from.file(ctx, m, false)
		if err != nil || f == nil {
			return part, errors.Join(err, fmt.Errorf("month %v: %w", m, roost.NotFound))
		}
		db, tables, args = f.read, monthTables(), []any{int64(m)}
	}
	var total digestSum
	for _, t := range tables {
		sent, err := c.copyTable(ctx, db, t, args)
		if err != nil {
			return part, fmt.Errorf("table %s: %w", t.name, c.to.explain(c.from.explain(err)))
		}
		stored, err := digestRows(ctx, c.session.tx, t, args)
		if err != nil {
			return part, fmt.Errorf("table %s: %w", t.name, c.to.explain(err))
		}
		if sent != stored {
			return part, fmt.Errorf("table %s: %w: %s has rows with the digest %v, and %v was sent", t.name,
				roost.Internal, c.to.name, stored, sent)
		}
		total.addSum(sent)
	}
	return CopiedPart{Month: m, Rows: total.count, Digest: strings.Fields(total.String())[1]}, nil
}

// copyTable copies the rows of a query, and returns their digest.
func (c *storeCopy) copyTable(ctx context.Context, db querier, t copiedTable, args []any) (digestSum, error) {
	source, err := openRows(ctx, db, t, args)
	if err != nil {
		return digestSum{}, err
	}
	defer source.rows.Close()
	err = c.session.conn.Raw(func(driver any) error {
		conn, ok := driver.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("the driver is a %T", driver)
		}
		_, err := conn.Conn().CopyFrom(ctx, pgx.Identifier{t.name}, source.names, source)
		return err
	})
	return source.digest, err
}

// digestRows returns the digest of the rows of a query.
func digestRows(ctx context.Context, db querier, t copiedTable, args []any) (digestSum, error) {
	source, err := openRows(ctx, db, t, args)
	if err != nil {
		return digestSum{}, err
	}
	defer source.rows.Close()
	for source.Next() {
		if _, err := source.Values(); err != nil {
			return digestSum{}, err
		}
	}
	return source.digest, source.Err()
}

// copiedRows is rows on their way, and the digest of those that have passed.
type copiedRows struct {
	rows   *sql.Rows
	names  []string // of the columns
	values []any
	digest digestSum
	text   []byte
}

// openRows runs the query of a table. The caller closes the rows.
func openRows(ctx context.Context, db querier, t copiedTable, args []any) (*copiedRows, error) {
	rows, err := db.QueryContext(ctx, t.text, args...)
	if err != nil {
		return nil, err
	}
	names, err := rows.Columns()
	if err != nil {
		rows.Close()
		return nil, err
	}
	return &copiedRows{rows: rows, names: names, values: make([]any, len(names))}, nil
}

func (r *copiedRows) Next() bool { return r.rows.Next() }
func (r *copiedRows) Err() error { return r.rows.Err() }

// Values returns the next row.
func (r *copiedRows) Values() ([]any, error) {
	into := make([]any, len(r.values))
	for i := range r.values {
		into[i] = &r.values[i]
	}
	if err := r.rows.Scan(into...); err != nil {
		return nil, err
	}
	r.text = r.text[:0]
	for _, v := range r.values {
		switch v := v.(type) {
		case nil:
			r.text = append(r.text, 'n')
		case int64:
			r.text = binary.BigEndian.AppendUint64(append(r.text, 'i'), uint64(v))
		case string:
			r.text = append(binary.AppendUvarint(append(r.text, 't'), uint64(len(v))), v...)
		case []byte:
			r.text = append(binary.AppendUvarint(append(r.text, 'b'), uint64(len(v))), v...)
		default:
			return nil, fmt.Errorf("%w: a column has a %T", roost.Internal, v)
		}
	}
	r.digest.addHash(sha256.Sum256(r.text))
	return r.values, nil
}
