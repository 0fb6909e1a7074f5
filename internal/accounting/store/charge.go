package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/failpoint"
)

// chargeName is by whom and for what a charge is.
type chargeName struct {
	ran                          accounting.Month
	rate                         int64
	owner, group, project, queue int64
	band                         int64
}

func (n chargeName) compare(o chargeName) int {
	return cmp.Or(cmp.Compare(n.ran, o.ran), cmp.Compare(n.rate, o.rate), cmp.Compare(n.owner, o.owner),
		cmp.Compare(n.group, o.group), cmp.Compare(n.project, o.project), cmp.Compare(n.queue, o.queue),
		cmp.Compare(n.band, o.band))
}

// chargeAmount is how much a charge is.
type chargeAmount struct {
	wall, cpu, amount int64
}

func (a chargeAmount) sub(b chargeAmount) chargeAmount {
	return chargeAmount{a.wall - b.wall, a.cpu - b.cpu, a.amount - b.amount}
}

// dueCharge is a row of the table due.
type dueCharge struct {
	attemptKey
	mark int64
}

const (
	selectDue = `SELECT month, source, seq, idx, attempt, mark FROM due
ORDER BY month, source, seq, idx, attempt LIMIT $1`
	countDue  = `SELECT count(*) FROM due`
	deleteDue = `DELETE FROM due WHERE month = $1 AND source = $2 AND seq = $3 AND idx = $4 AND attempt = $5 AND mark = $6`

	selectChargedAttempt = `SELECT a.attempt, a.started, a.ended, a.class, a.cpu, a.mem, a.gpus, a.gpu_mem, a.wall, a.suspended,
 a.useful, a.cause, a.segments, coalesce(j.owner, 0), coalesce(j.grp, 0), coalesce(j.project, 0), coalesce(j.queue, 0),
 coalesce(j.band, 0)
FROM attempt a LEFT JOIN job j ON j.month = a.month AND j.source = a.source AND j.seq = a.seq
WHERE a.month = $1 AND a.source = $2 AND a.seq = $3 AND a.idx = $4 AND a.attempt = $5`

	selectChargeSums = `SELECT ran, rate, owner, grp, project, queue, band, CAST(sum(wall) AS bigint),
 CAST(sum(cpu) AS bigint), CAST(sum(amount) AS bigint), max(version)
FROM charge WHERE month = $1 AND source = $2 AND seq = $3 AND idx = $4 AND attempt = $5
GROUP BY ran, rate, owner, grp, project, queue, band`

	insertCharge = `INSERT INTO charge (month, source, seq, idx, attempt, version, part, ran, statement, rate, owner, grp, project,
 queue, band, wall, cpu, amount, made)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)`

	addChargeSum = `INSERT INTO charge_sum (statement, ran, owner, grp, project, queue, band, cpu, amount)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (statement, ran, owner, grp, project, queue, band) DO UPDATE SET cpu = charge_sum.cpu + excluded.cpu,
 amount = charge_sum.amount + excluded.amount`
)

// Charge computes the charges of attempts that ended or changed, at most limit of them.
// It returns how many it looked at: call it again while that is limit. A charge for a
// closed month goes to the statement of the first open month after it.
func (s *Store) Charge(ctx context.Context, now accounting.Millis, limit int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	due, err := s.dueCharges(ctx, limit)
	if err != nil || len(due) == 0 {
		return 0, err
	}
	c, err := s.newCharger(ctx, now)
	if err != nil {
		return 0, fmt.Errorf("charges: %w", s.engine.explain(err))
	}
	defer c.close()
	for _, d := range due {
		if err := c.read(ctx, d.attemptKey); err != nil {
			return 0, fmt.Errorf("charges: %w", s.engine.explain(err))
		}
	}
	err = s.inTx(ctx, func(tx *sql.Tx) error { return c.writeAll(ctx, tx, due) })
	if err != nil {
		return 0, fmt.Errorf("charges: %w", err)
	}
	failpoint.Point(failpoint.AccountantAfterCharge)
	return len(due), nil
}

func (s *Store) dueCharges(ctx context.Context, limit int) ([]dueCharge, error) {
	var due []dueCharge
	err := queryAll(ctx, s.engine.reader(), func(rows *sql.Rows) error {
		var d dueCharge
		err := rows.Scan(&d.month, &d.source, &d.seq, &d.index, &d.attempt, &d.mark)
		due = append(due, d)
		return err
	}, selectDue, limit)
	return due, s.engine.explain(err)
}

// charger computes and writes the charges of attempts.
type charger struct {
	store  *Store
	now    accounting.Millis
	rates  accounting.RateTable
	closed map[accounting.Month]bool
	wanted []map[chargeName]chargeAmount // in the order of read
	reads  map[accounting.Month]*monthRead
}

// monthRead is selectChargedAttempt on the partition of a month, prepared.
type monthRead struct {
	name      string
	statement *sql.Stmt
}

func (s *Store) newCharger(ctx context.Context, now accounting.Millis) (*charger, error) {
	rates, err := readRates(ctx, s.engine.reader())
	if err != nil {
		return nil, err
	}
	closed, err := s.closedMonths(ctx)
	return &charger{
		store: s, now: now, rates: accounting.NewRateTable(rates), closed: closed,
		reads: map[accounting.Month]*monthRead{},
	}, err
}

func (c *charger) close() {
	for _, r := range c.reads {
		if r != nil {
			r.statement.Close()
		}
	}
}

// month returns the prepared read of a month, or nil if the month was removed.
func (c *charger) month(ctx context.Context, m accounting.Month) (*monthRead, error) {
	if r, ok := c.reads[m]; ok {
		return r, nil
	}
	parts, err := c.store.engine.partitions(ctx, m, m)
	if err != nil || len(parts) == 0 {
		c.reads[m] = nil
		return nil, err
	}
	statement, err := parts[0].db.PrepareContext(ctx, selectChargedAttempt)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", parts[0].name, err)
	}
	c.reads[m] = &monthRead{parts[0].name, statement}
	return c.reads[m], nil
}

// read computes what the attempt has to cost.
func (c *charger) read(ctx context.Context, k attemptKey) error {
	wanted := map[chargeName]chargeAmount{}
	c.wanted = append(c.wanted, wanted)
	month, err := c.month(ctx, k.month)
	if err != nil || month == nil {
		c.wanted[len(c.wanted)-1] = nil
		return err
	}
	var a accounting.AttemptEntry
	var class int64
	var segments []byte
	var n chargeName
	h := &a.Held
	err = month.statement.QueryRowContext(ctx, int64(k.month), k.source, k.seq, k.index, k.attempt).Scan(
		&a.Attempt, &a.Started, &a.Ended, &class, &h.CPU, &h.Memory, &h.GPUs, &h.GPUMemory, &a.Wall, &a.Suspended,
		&a.Useful,
		&a.Cause, &segments, &n.owner, &n.group, &n.project, &n.queue, &n.band)
	if errors.Is(err, sql.ErrNoRows) {
		c.wanted[len(c.wanted)-1] = nil // its month was removed: the charges remain
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", month.name, err)
	}
	if a.Segments, err = unpackSegments(segments); err != nil {
		return fmt.Errorf("%s: attempt %v: %w", month.name, k, err)
	}
	a.Class = c.store.names.text(class)
	job := accounting.JobEntry{Group: c.store.names.text(n.group)}
	job.Band = bandOf(n.band)
	for _, part := range c.rates.Charges(&a, &job) {
		n.ran, n.rate = part.Month, part.RateID
		wanted[n] = chargeAmount{part.Time, part.CoreTime, int64(part.Amount)}
	}
	return nil
}

// chargeWriter has the statements that write charges, prepared in one transaction.
type chargeWriter struct {
	sums, insert, addSum, done *sql.Stmt
}

func newChargeWriter(ctx context.Context, tx *sql.Tx) (w chargeWriter, err error) {
	for _, p := range []struct {
		statement **sql.Stmt
		text      string
	}{
		{&w.sums, selectChargeSums}, {&w.insert, insertCharge}, {&w.addSum, addChargeSum}, {&w.done, deleteDue},
	} {
		if *p.statement, err = tx.PrepareContext(ctx, p.text); err != nil {
			return w, err
		}
	}
	return w, nil
}

// writeAll writes what has been read, and removes the marks. The end of the transaction
// closes its statements.
func (c *charger) writeAll(ctx context.Context, tx *sql.Tx, due []dueCharge) error {
	w, err := newChargeWriter(ctx, tx)
	if err != nil {
		return err
	}
	for i, d := range due {
		if err := c.write(ctx, &w, d.attemptKey, c.wanted[i]); err != nil {
			return err
		}
		_, err := w.done.ExecContext(ctx, int64(d.month), d.source, d.seq, d.index, d.attempt, d.mark)
		if err != nil {
			return err
		}
	}
	return nil
}

// write adds a version: the difference between what the attempt has to cost and what has
// been charged for it. wanted is nil for an attempt that is not stored any more.
func (c *charger) write(ctx context.Context, w *chargeWriter, k attemptKey, wanted map[chargeName]chargeAmount) error {
	if wanted == nil {
		return nil
	}
	differences, version, err := w.differences(ctx, k, wanted)
	if err != nil {
		return err
	}
	part := 0
	for _, n := range slices.SortedFunc(maps.Keys(differences), chargeName.compare) {
		d := differences[n]
		if d == (chargeAmount{}) {
			continue
		}
		statement := c.statementMonth(n.ran)
		_, err := w.insert.ExecContext(ctx, int64(k.month), k.source, k.seq, k.index, k.attempt, version+1, part,
			int64(n.ran), int64(statement), n.rate, n.owner, n.group, n.project, n.queue, n.band, d.wall, d.cpu,
			d.amount,
			int64(c.now))
		if err != nil {
			return err
		}
		_, err = w.addSum.ExecContext(ctx, int64(statement), int64(n.ran), n.owner, n.group, n.project, n.queue, n.band,
			d.cpu, d.amount)
		if err != nil {
			return err
		}
		part++
	}
	return nil
}

// differences returns wanted less what all versions have charged, and the last version.
func (w *chargeWriter) differences(ctx context.Context, k attemptKey, wanted map[chargeName]chargeAmount) (
	differences map[chargeName]chargeAmount, version int64, err error) {
	rows, err := w.sums.QueryContext(ctx, int64(k.month), k.source, k.seq, k.index, k.attempt)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	differences = maps.Clone(wanted)
	for rows.Next() {
		var n chargeName
		var have chargeAmount
		var v int64
		if err := rows.Scan(&n.ran, &n.rate, &n.owner, &n.group, &n.project, &n.queue, &n.band, &have.wall, &have.cpu,
			&have.amount, &v); err != nil {
			return nil, 0, err
		}
		version = max(version, v)
		differences[n] = wanted[n].sub(have)
	}
	return differences, version, rows.Err()
}

// statementMonth returns the month on whose statement a charge comes.
func (c *charger) statementMonth(ran accounting.Month) accounting.Month {
	for c.closed[ran] {
		ran++
	}
	return ran
}

const selectEnded = `SELECT month, source, seq, idx, attempt FROM attempt WHERE ended >= $1`

// Rerate has everything that ended from a time on charged again, by the rates that are
// valid now. Call Charge afterwards.
func (s *Store) Rerate(ctx context.Context, from accounting.Millis) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	parts, err := s.engine.partitions(ctx, 0, 0)
	if err != nil {
		return err
	}
	for _, p := range parts {
		marks := s.newMarkSet()
		err := queryAll(ctx, p.db, func(rows *sql.Rows) error {
			var k attemptKey
			err := rows.Scan(&k.month, &k.source, &k.seq, &k.index, &k.attempt)
			marks.due[k] = true
			return err
		}, selectEnded, int64(max(from, 1)))
		if err == nil {
			err = s.inTx(ctx, func(tx *sql.Tx) error { return s.storeMarks(ctx, tx, &marks, true) })
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, s.engine.explain(err))
		}
	}
	return nil
}
