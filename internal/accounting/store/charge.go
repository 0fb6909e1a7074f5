package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"

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
	countDue = `SELECT count(*) FROM due`
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
	if err := c.read(ctx, due); err != nil {
		return 0, fmt.Errorf("charges: %w", s.engine.explain(err))
	}
	err = s.inTx(ctx, func(tx *sql.Tx) error { return c.write(ctx, tx, due) })
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
