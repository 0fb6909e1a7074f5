package store

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// charger computes and writes the charges of attempts.
type charger struct {
	store  *Store
	now    accounting.Millis
	rates  accounting.RateTable
	closed map[accounting.Month]bool
	wanted map[attemptKey]chargeAmounts // what each attempt has to cost

	rows [][]int64 // of the table charge
	sums map[chargeSumKey]chargeAmount
}

// chargeAmounts are the charges of an attempt.
type chargeAmounts map[chargeName]chargeAmount

// chargeSumKey is the key of the table charge_sum. Its name has no rate.
type chargeSumKey struct {
	statement accounting.Month
	chargeName
}

// The statements of charges: by the key of one attempt, or by arrays of keys. SQLite
// would prepare the former again for each key without the signs, and if it grouped rows.
const (
	keyArraysJoin = `
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[]) AS k (month, source, seq, idx, attempt)
CROSS JOIN LATERAL (`
	ofKey      = ` WHERE a.month = +$1 AND a.source = +$2 AND a.seq = +$3 AND a.idx = +$4 AND a.attempt = +$5`
	ofArrayKey = ` WHERE a.month = k.month AND a.source = k.source AND a.seq = k.seq AND a.idx = k.idx
 AND a.attempt = k.attempt`

	selectCharged = `SELECT a.month, a.source, a.seq, a.idx, a.attempt, a.assigned, a.started, a.ended, a.node, a.cpu, a.mem,
 a.gpus, a.gpu_mem, a.wall, a.suspended, a.useful, a.cause, a.segments, coalesce(j.owner, 0) AS owner, coalesce(j.grp, 0) AS grp,
 coalesce(j.project, 0) AS project, coalesce(j.queue, 0) AS queue, coalesce(j.band, 0) AS band
FROM attempt a LEFT JOIN job j ON j.month = a.month AND j.source = a.source AND j.seq = a.seq`
	selectAllCharged = `SELECT c.*` + keyArraysJoin + selectCharged + ofArrayKey + ` LIMIT 1) AS c`

	selectCharges = `SELECT a.month, a.source, a.seq, a.idx, a.attempt, ran, rate, owner, grp, project, queue, band,
 wall, cpu, amount, version
FROM charge a`
	selectAllCharges = `SELECT c.*` + keyArraysJoin + selectCharges + ofArrayKey + `) AS c`

	insertCharge = `INSERT INTO charge (month, source, seq, idx, attempt, version, part, ran, statement, rate, owner, grp, project,
 queue, band, wall, cpu, amount, made)
`
	chargeRow  = `VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)`
	chargeRows = `SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
 $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[],
 $15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[]) AS k`

	addChargeSum = `INSERT INTO charge_sum (statement, ran, owner, grp, project, queue, band, cpu, amount)
`
	chargeSumRow  = `VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`
	chargeSumRows = `SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
 $7::bigint[], $8::bigint[], $9::bigint[]) AS k`
	onChargeSumConflict = `
ON CONFLICT (statement, ran, owner, grp, project, queue, band) DO UPDATE SET cpu = charge_sum.cpu + excluded.cpu,
 amount = charge_sum.amount + excluded.amount`
)

func (s *Store) newCharger(ctx context.Context, now accounting.Millis) (*charger, error) {
	rates, err := readRates(ctx, s.engine.reader())
	if err != nil {
		return nil, err
	}
	closed, err := s.closedMonths(ctx)
	return &charger{
		store: s, now: now, rates: accounting.NewRateTable(rates), closed: closed,
		wanted: map[attemptKey]chargeAmounts{}, sums: map[chargeSumKey]chargeAmount{},
	}, err
}

// read computes what the attempts have to cost. They are in the order of months. Those of
// a month that was removed are left out: their charges remain.
func (c *charger) read(ctx context.Context, due []dueCharge) error {
	for len(due) > 0 {
		month, n := due[0].month, 0
		var keys []attemptKey
		for ; n < len(due) && due[n].month == month; n++ {
			keys = append(keys, due[n].attemptKey)
		}
		due = due[n:]
		parts, err := c.store.engine.partitions(ctx, month, month)
		if err != nil {
			return err
		}
		query := keyQuery{selectCharged + ofKey, selectAllCharged}
		for _, p := range parts {
			if err := c.store.engine.queryKeys(ctx, p.db, query, keys, c.readRow); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
	}
	return nil
}

// readRow computes what the attempt of a row of selectCharged has to cost.
func (c *charger) readRow(rows *sql.Rows) error {
	var k attemptKey
	var a accounting.AttemptEntry
	var node int64
	var segments []byte
	var n chargeName
	h := &a.Held
	err := rows.Scan(&k.month, &k.source, &k.seq, &k.index, &k.attempt, &a.Assigned, &a.Started, &a.Ended, &node,
		&h.CPU, &h.Memory, &h.GPUs, &h.GPUMemory, &a.Wall, &a.Suspended, &a.Useful, &a.Cause, &segments, &n.owner,
		&n.group, &n.project, &n.queue, &n.band)
	if err != nil {
		return err
	}
	if a.Segments, err = unpackSegments(segments); err != nil {
		return fmt.Errorf("attempt %v: %w", k, err)
	}
	a.Attempt = roost.AttemptNumber(k.attempt)
	a.Class = c.store.attemptClass(node, &a)
	job := accounting.JobEntry{Group: c.store.names.text(n.group)}
	job.Band = bandOf(n.band)
	wanted := chargeAmounts{}
	for _, part := range c.rates.Charges(&a, &job) {
		n.ran, n.rate = part.Month, part.RateID
		wanted[n] = chargeAmount{part.Time, part.CoreTime, int64(part.Amount)}
	}
	c.wanted[k] = wanted
	return nil
}

// write writes what has been read, and removes the marks.
func (c *charger) write(ctx context.Context, tx *sql.Tx, due []dueCharge) error {
	var keys []attemptKey
	for _, d := range due {
		if c.wanted[d.attemptKey] != nil {
			keys = append(keys, d.attemptKey)
		}
	}
	versions, err := c.subtractCharged(ctx, tx, keys)
	if err != nil {
		return err
	}
	for _, k := range keys {
		c.add(k, versions[k]+1)
	}
	e, insert := c.store.engine, numberInsert{insertCharge + chargeRow, insertCharge + chargeRows}
	if err := e.insertRows(ctx, tx, insert, c.rows); err != nil {
		return err
	}
	sums := make([][]int64, 0, len(c.sums))
	for k, d := range c.sums {
		sums = append(sums, []int64{
			int64(k.statement), int64(k.ran), k.owner, k.group, k.project, k.queue, k.band, d.cpu, d.amount,
		})
	}
	insert = numberInsert{
		addChargeSum + chargeSumRow + onChargeSumConflict, addChargeSum + chargeSumRows + onChargeSumConflict,
	}
	if err := e.insertRows(ctx, tx, insert, sums); err != nil {
		return err
	}
	return e.removeDue(ctx, tx, due)
}

// subtractCharged subtracts from what each attempt has to cost what all versions have
// charged. It returns the last version of those that have one.
func (c *charger) subtractCharged(ctx context.Context, tx *sql.Tx, keys []attemptKey) (map[attemptKey]int64, error) {
	versions := map[attemptKey]int64{}
	query := keyQuery{selectCharges + ofKey, selectAllCharges}
	err := c.store.engine.queryKeys(ctx, tx, query, keys, func(rows *sql.Rows) error {
		var k attemptKey
		var n chargeName
		var have chargeAmount
		var version int64
		if err := rows.Scan(&k.month, &k.source, &k.seq, &k.index, &k.attempt, &n.ran, &n.rate, &n.owner, &n.group,
			&n.project, &n.queue, &n.band, &have.wall, &have.cpu, &have.amount, &version); err != nil {
			return err
		}
		versions[k] = max(versions[k], version)
		c.wanted[k][n] = c.wanted[k][n].sub(have)
		return nil
	})
	return versions, err
}

// add adds a version: the difference between what the attempt has to cost and what has
// been charged for it.
func (c *charger) add(k attemptKey, version int64) {
	differences := c.wanted[k]
	part := int64(0)
	for _, n := range slices.SortedFunc(maps.Keys(differences), chargeName.compare) {
		d := differences[n]
		if d == (chargeAmount{}) {
			continue
		}
		statement := c.statementMonth(n.ran)
		c.rows = append(c.rows, []int64{
			int64(k.month), k.source, k.seq, k.index, k.attempt, version, part, int64(n.ran), int64(statement), n.rate,
			n.owner, n.group, n.project, n.queue, n.band, d.wall, d.cpu, d.amount, int64(c.now),
		})
		n.rate = 0
		sum := c.sums[chargeSumKey{statement, n}]
		sum.cpu, sum.amount = sum.cpu+d.cpu, sum.amount+d.amount
		c.sums[chargeSumKey{statement, n}] = sum
		part++
	}
}

// statementMonth returns the month on whose statement a charge comes.
func (c *charger) statementMonth(ran accounting.Month) accounting.Month {
	for c.closed[ran] {
		ran++
	}
	return ran
}
