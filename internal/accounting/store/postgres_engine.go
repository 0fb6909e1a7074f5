package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// maxServerReaders bounds the connections that read from a server, which allows 100
// unless it is told otherwise. One reader may take two.
const maxServerReaders = 64

// postgresLock is the advisory lock of the one accountant that writes.
const postgresLock = 0x726f6f7374 // "roost"

// postgresEngine is a database of a PostgreSQL server.
type postgresEngine struct {
	name        string
	write, read *sql.DB // write has one connection, which holds the lock
	lock        *sql.Conn

	mu   sync.Mutex
	made map[accounting.Month]bool // months whose partitions exist
}

func openPostgresEngine(ctx context.Context, address string) (e *postgresEngine, err error) {
	config, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, fmt.Errorf("postgres address: %w: %w", roost.BadConfig, err)
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "roost-accountant"
	}
	e = &postgresEngine{
		name: fmt.Sprintf("database %s at %s", config.Database, net.JoinHostPort(config.Host, fmt.Sprint(config.Port))),
		made: map[accounting.Month]bool{},
	}
	defer func() {
		if err != nil {
			err = errors.Join(e.explain(err), e.close())
		}
	}()
	e.read = stdlib.OpenDB(*config)
	e.write = stdlib.OpenDB(*writerConfig(config))
	e.write.SetMaxOpenConns(2) // one more holds the lock
	e.read.SetMaxOpenConns(maxServerReaders)
	e.read.SetMaxIdleConns(4)
	if err := e.takeLock(ctx); err != nil {
		return e, err
	}
	if _, err := e.write.ExecContext(ctx, postgresPrepare); err != nil {
		return e, err
	}
	return e, postgresSchema().migrate(ctx, e.write)
}

// writerConfig has the server look up the rows of a batch by their keys. Without
// statistics of a partition that grows fast it would rather read all of the table. It
// estimates that a plan costs a great deal that needs what is off here, and would compile
// it to machine code (jit), which takes a hundred times longer than the statement.
func writerConfig(config *pgx.ConnConfig) *pgx.ConnConfig {
	c := config.Copy()
	for _, name := range []string{"enable_seqscan", "enable_hashjoin", "enable_mergejoin", "jit"} {
		c.RuntimeParams[name] = "off"
	}
	return c
}

const (
	boundLock = `SET lock_timeout = '5s'`
	waitLock  = `SELECT pg_advisory_lock($1)`
)

// takeLock takes the lock for the life of a connection. It waits some seconds: the server
// needs a moment to notice that an accountant was killed.
func (e *postgresEngine) takeLock(ctx context.Context) (err error) {
	conn, err := e.write.Conn(ctx)
	if err != nil {
		return err
	}
	if _, err = conn.ExecContext(ctx, boundLock); err == nil {
		_, err = conn.ExecContext(ctx, waitLock, int64(postgresLock))
	}
	if err == nil {
		e.lock = conn
		return nil
	}
	conn.Close()
	var server *pgconn.PgError
	if errors.As(err, &server) && server.Code == "55P03" { // lock_not_available
		return fmt.Errorf("%s: %w: another accountant uses it", e.name, roost.Conflict)
	}
	return err
}

// checkLock takes the lock again if its connection is gone.
func (e *postgresEngine) checkLock(ctx context.Context) error {
	if e.lock != nil {
		if e.lock.PingContext(ctx) == nil {
			return nil
		}
		e.lock.Close()
		e.lock = nil
	}
	return e.takeLock(ctx)
}

func (e *postgresEngine) reader() *sql.DB { return e.read }
func (e *postgresEngine) writer() *sql.DB { return e.write }

func (e *postgresEngine) partitions(context.Context, accounting.Month, accounting.Month) ([]partition, error) {
	return []partition{{e.name, e.read}}, nil
}

const selectPartitions = `SELECT CAST(substr(c.relname, 5) AS bigint) AS month FROM pg_inherits i
JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'job'::regclass ORDER BY month`

func (e *postgresEngine) months(ctx context.Context) ([]accounting.Month, error) {
	var months []accounting.Month
	err := queryAll(ctx, e.read, func(rows *sql.Rows) error {
		var m accounting.Month
		err := rows.Scan(&m)
		months = append(months, m)
		return err
	}, selectPartitions)
	return months, e.explain(err)
}

// explain names the database in an error of the server or of the way to it.
func (e *postgresEngine) explain(err error) error {
	if err == nil {
		return nil
	}
	var server *pgconn.PgError
	var network net.Error
	var connect *pgconn.ConnectError
	switch {
	case errors.As(err, &server):
		switch {
		case server.Code == "53100" || server.Code == "53200":
			return fmt.Errorf("%s: %w: %w: make space on the server; nothing is lost, the schedds wait", e.name,
				roost.Exhausted, err)
		case server.Code[:2] == "57" || server.Code[:2] == "08" || server.Code[:2] == "53":
			return fmt.Errorf("%s: %w: %w", e.name, roost.Unavailable, err)
		case server.Code[:2] == "XX":
			return fmt.Errorf("%s is damaged: %w", e.name, err)
		}
		return fmt.Errorf("%s: %w", e.name, err)
	case errors.As(err, &connect), errors.As(err, &network), errors.Is(err, os.ErrDeadlineExceeded),
		errors.Is(err, driver.ErrBadConn), pgconn.SafeToRetry(err):
		return fmt.Errorf("%s: %w: %w", e.name, roost.Unavailable, err)
	}
	return err
}

func (e *postgresEngine) purge(ctx context.Context, text string, before accounting.Millis) error {
	_, err := e.write.ExecContext(ctx, text, int64(before))
	return e.explain(err)
}

const (
	addMonth  = `SELECT add_month($1)`
	dropMonth = `SELECT drop_month($1)`
)

func (e *postgresEngine) dropMonth(ctx context.Context, m accounting.Month) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.made, m)
	_, err := e.write.ExecContext(ctx, dropMonth, int64(m))
	return e.explain(err)
}

const (
	checkJobs     = `SELECT count(*) FROM job`
	checkAttempts = `SELECT count(reason) FROM attempt`
	checkUsage    = `SELECT count(windows) FROM usage`
	checkCharges  = `SELECT count(amount) FROM charge`
)

// check reads the great tables: the server verifies its pages' checksums, if it has any.
func (e *postgresEngine) check(ctx context.Context) error {
	var errs []error
	for _, text := range []string{checkJobs, checkAttempts, checkUsage, checkCharges} {
		var n int64
		errs = append(errs, e.explain(e.read.QueryRowContext(ctx, text).Scan(&n)))
	}
	return errors.Join(errs...)
}

func (e *postgresEngine) close() error {
	var errs []error
	if e.lock != nil {
		errs = append(errs, e.lock.Close())
	}
	for _, db := range []*sql.DB{e.read, e.write} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}
