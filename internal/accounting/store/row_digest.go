package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"

	"github.com/roost-batch/roost"
)

// The tables whose rows nothing can make again. A row is written once and never changes.
// Each statement returns the id, the row as a text, and its digest or NULL. Rows that
// have a digest and are gone have no text.
const (
	digestRates = `SELECT r.id, CAST(r.id AS text) || '|' || r.grp || '|' || CAST(r.start AS text) || '|' || r.document,
 d.digest FROM rate r LEFT JOIN row_digest d ON d.kind = 1 AND d.id = r.id
UNION ALL SELECT d.id, NULL, d.digest FROM row_digest d WHERE d.kind = 1 AND d.id NOT IN (SELECT id FROM rate)`

	digestAdjustments = `SELECT a.id, CAST(a.id AS text) || '|' || a.request || '|' || CAST(a.month AS text) || '|' ||
 a.project || '|' || a.grp || '|' || a.owner || '|' || CAST(a.amount AS text) || '|' || a.reason || '|' || a.person ||
 '|' || CAST(a.made AS text), d.digest
FROM adjustment a LEFT JOIN row_digest d ON d.kind = 2 AND d.id = a.id
UNION ALL SELECT d.id, NULL, d.digest FROM row_digest d WHERE d.kind = 2 AND d.id NOT IN (SELECT id FROM adjustment)`

	digestBudgets = `SELECT b.id, CAST(b.id AS text) || '|' || b.project || '|' || b.grp || '|' || b.owner || '|' ||
 CAST(b.first AS text) || '|' || CAST(b.last AS text) || '|' || CAST(b.amount AS text) || '|' || CAST(b.hard AS text) ||
 '|' || b.person || '|' || CAST(b.made AS text), d.digest
FROM budget b LEFT JOIN row_digest d ON d.kind = 3 AND d.id = b.id
UNION ALL SELECT d.id, NULL, d.digest FROM row_digest d WHERE d.kind = 3 AND d.id NOT IN (SELECT id FROM budget)`

	digestMonths = `SELECT m.month, CAST(m.month AS text) || '|' || CAST(m.closed AS text) || '|' || m.closer || '|' ||
 CAST(m.rates AS text), d.digest FROM month m LEFT JOIN row_digest d ON d.kind = 4 AND d.id = m.month
UNION ALL SELECT d.id, NULL, d.digest FROM row_digest d WHERE d.kind = 4 AND d.id NOT IN (SELECT month FROM month)`

	insertRowDigest = `INSERT INTO row_digest (kind, id, digest) VALUES ($1, $2, $3)`
)

// permanentTable is one of the tables; its kind is on disk.
type permanentTable struct {
	kind       int64
	name, text string
}

func permanentTables() []permanentTable {
	return []permanentTable{
		{1, "rate", digestRates}, {2, "adjustment", digestAdjustments}, {3, "budget", digestBudgets},
		{4, "month", digestMonths},
	}
}

// digestedRow is a row of one of the statements.
type digestedRow struct {
	id     int64
	text   sql.NullString // the row is there
	digest []byte         // nil: none yet
}

func (t permanentTable) rows(ctx context.Context, db querier) (all []digestedRow, err error) {
	err = queryAll(ctx, db, func(rows *sql.Rows) error {
		var r digestedRow
		err := rows.Scan(&r.id, &r.text, &r.digest)
		all = append(all, r)
		return err
	}, t.text)
	return all, err
}

// inPermanentTx runs f, which writes rows of these tables, in a transaction.
func (s *Store) inPermanentTx(ctx context.Context, f func(*sql.Tx) error) error {
	return s.inTx(ctx, func(tx *sql.Tx) error {
		if err := f(tx); err != nil {
			return err
		}
		return addDigests(ctx, tx)
	})
}

// addDigests adds a digest of each row that has none. New rows get one in the transaction
// that writes them, and all rows after an upgrade.
func addDigests(ctx context.Context, tx *sql.Tx) error {
	for _, t := range permanentTables() {
		rows, err := t.rows(ctx, tx)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if r.digest != nil {
				continue
			}
			sum := sha256.Sum256([]byte(r.text.String))
			if _, err := tx.ExecContext(ctx, insertRowDigest, t.kind, r.id, sum[:]); err != nil {
				return err
			}
		}
	}
	return nil
}

// Verify compares all rates, adjustments, budgets and closed months with their digests.
// It returns an error that names each row that differs. SQLite has no checksums of its
// own: it would serve such a row.
func (s *Store) Verify(ctx context.Context) error {
	var errs []error
	for _, t := range permanentTables() {
		rows, err := t.rows(ctx, s.engine.reader())
		if err != nil {
			return errors.Join(append(errs, s.engine.explain(err))...)
		}
		for _, r := range rows {
			sum := sha256.Sum256([]byte(r.text.String))
			switch {
			case !r.text.Valid:
				errs = append(errs, fmt.Errorf("table %s: %w: row %d is gone: restore a copy of the store from before",
					t.name, roost.Internal, r.id))
			case r.digest != nil && !bytes.Equal(r.digest, sum[:]):
				errs = append(errs, fmt.Errorf("table %s: %w: row %d is damaged, its digest differs: restore a copy "+
					"of the store from before", t.name, roost.Internal, r.id))
			}
		}
	}
	return errors.Join(errs...)
}
