package store

import (
	"context"
	"database/sql"

	"github.com/roost-batch/roost/internal/accounting"
)

// engine is the database under a Store: SQLite or PostgreSQL.
type engine interface {
	// reader returns the database of the ordinary tables, for reading.
	reader() *sql.DB

	// writer returns it for writing. There is one writer.
	writer() *sql.DB

	// partitions returns the databases with rows of jobs that were submitted in a range
	// of months. A month of 0 is no bound.
	partitions(ctx context.Context, first, last accounting.Month) ([]partition, error)

	// months returns the months that have rows.
	months(ctx context.Context) ([]accounting.Month, error)

	// begin starts to write rows.
	begin(ctx context.Context) (rowSession, error)

	// putMarks writes marks of hours and of charges.
	putMarks(ctx context.Context, tx *sql.Tx, hours []int64, due []attemptKey, mark int64) error

	// insertRows inserts rows of numbers.
	insertRows(ctx context.Context, tx *sql.Tx, insert numberInsert, rows [][]int64) error

	// queryKeys runs a query for each of the attempts.
	queryKeys(ctx context.Context, db preparer, q keyQuery, keys []attemptKey, scan func(*sql.Rows) error) error

	// removeDue removes charges that have been computed, unless they have a new mark.
	removeDue(ctx context.Context, tx *sql.Tx, due []dueCharge) error

	// explain adds to an error of the database what is wrong and what to do.
	explain(err error) error

	// purge runs a statement with a time on all rows of jobs.
	purge(ctx context.Context, text string, before accounting.Millis) error

	// dropMonth removes the rows of a month.
	dropMonth(ctx context.Context, m accounting.Month) error

	// check reads everything, and names what is damaged.
	check(ctx context.Context) error

	// size returns how many bytes the database has.
	size(ctx context.Context) (int64, error)

	close() error
}

// numberInsert is a statement that inserts rows of numbers. It takes one row with an
// argument for each column, or all rows with an array for each.
type numberInsert struct{ single, arrays string }

// keyQuery is a query by the key of an attempt, or by arrays of its columns. The key is
// in the first columns of the result.
type keyQuery struct{ single, arrays string }

// preparer is a database or a transaction.
type preparer interface {
	querier
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// partition is a database with rows of jobs, and its name for messages.
type partition struct {
	name string
	db   *sql.DB
}

// rowSession writes rows of jobs of any months. Nothing is visible before commit.
type rowSession interface {
	// jobs returns the names of those of the jobs that are stored.
	jobs(ctx context.Context, keys []jobKey) (map[jobKey]jobNames, error)

	// attempts returns where those of the attempts that are stored are placed.
	attempts(ctx context.Context, keys []attemptKey) (map[attemptKey]placedAttempt, error)

	// attemptsOf returns where all attempts of the jobs are placed.
	attemptsOf(ctx context.Context, keys []jobKey) (map[attemptKey]placedAttempt, error)

	// store writes rows, but none over one with a number that is as high.
	store(ctx context.Context, rows *rowSet) error

	// setOwners sets the owner of all attempts of the jobs.
	setOwners(ctx context.Context, owners map[jobKey]int64) error

	// commit runs first and commits it, commits the rows, runs last and commits it; or it
	// does all of it in one transaction.
	commit(ctx context.Context, first, last func(*sql.Tx) error) error

	rollback()
}

// rowSet is what a session stores.
type rowSet struct {
	jobs     []*jobRow
	attempts []*attemptRow
	actions  []keyedRow
	usage    []keyedRow
}

// The statements that write rows. A row with an older number never replaces another.
const (
	upsertJob = `INSERT INTO job (month, source, seq, number, name, owner, uid, gid, unix_group, grp, project, band, queue,
 is_array, tasks, cpu, mem, disk, gpus, gpu_mem, walltime, argument, work_dir, submitted, eligible, ended, removed)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24,
 $25, $26, $27)` + onJobConflict
	onJobConflict = `
ON CONFLICT (month, source, seq) DO UPDATE SET number = excluded.number, name = excluded.name, owner = excluded.owner,
 uid = excluded.uid, gid = excluded.gid, unix_group = excluded.unix_group, grp = excluded.grp,
 project = excluded.project, band = excluded.band, queue = excluded.queue, is_array = excluded.is_array,
 tasks = excluded.tasks, cpu = excluded.cpu, mem = excluded.mem, disk = excluded.disk, gpus = excluded.gpus,
 gpu_mem = excluded.gpu_mem, walltime = excluded.walltime, argument = excluded.argument, work_dir = excluded.work_dir,
 submitted = excluded.submitted, eligible = excluded.eligible, ended = excluded.ended, removed = excluded.removed
WHERE excluded.number > job.number`

	upsertAttempt = `INSERT INTO attempt (month, source, seq, idx, attempt, number, owner, node, class, assigned, started,
 ended, cpu, mem, disk, gpus, gpu_mem, wall, user_cpu, system_cpu, suspended, useful, peak_mem, peak_disk,
 peak_gpu_mem, read, written, cause, exit_code, signal, reason, segments, span, begins)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24,
 $25, $26, $27, $28, $29, $30, $31, $32, $33, $34)` + onAttemptConflict
	onAttemptConflict = `
ON CONFLICT (month, source, seq, idx, attempt) DO UPDATE SET number = excluded.number, owner = excluded.owner,
 node = excluded.node, class = excluded.class, assigned = excluded.assigned, started = excluded.started,
 ended = excluded.ended, cpu = excluded.cpu, mem = excluded.mem, disk = excluded.disk, gpus = excluded.gpus,
 gpu_mem = excluded.gpu_mem, wall = excluded.wall, user_cpu = excluded.user_cpu, system_cpu = excluded.system_cpu,
 suspended = excluded.suspended, useful = excluded.useful, peak_mem = excluded.peak_mem,
 peak_disk = excluded.peak_disk, peak_gpu_mem = excluded.peak_gpu_mem, read = excluded.read,
 written = excluded.written, cause = excluded.cause, exit_code = excluded.exit_code, signal = excluded.signal,
 reason = excluded.reason, segments = excluded.segments, span = excluded.span, begins = excluded.begins
WHERE excluded.number > attempt.number`

	upsertAction = `INSERT INTO action (month, source, seq, at, idx, what, person, number, reason)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)` + onActionConflict
	onActionConflict = `
ON CONFLICT (month, source, seq, at, idx, what, person) DO UPDATE SET number = excluded.number, reason = excluded.reason
WHERE excluded.number > action.number`

	upsertUsage = `INSERT INTO usage (month, source, seq, idx, attempt, hour, number, windows)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)` + onUsageConflict
	onUsageConflict = `
ON CONFLICT (month, source, seq, idx, attempt, hour) DO UPDATE SET number = excluded.number, windows = excluded.windows
WHERE excluded.number > usage.number`
)
