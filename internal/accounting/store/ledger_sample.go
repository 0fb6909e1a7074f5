package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

const (
	insertLedgerSample = `INSERT INTO ledger_sample (at) VALUES ($1) ON CONFLICT (at) DO NOTHING`
	insertLedgerUse    = `INSERT INTO ledger_use (at, owner, grp, used) VALUES ($1, $2, $3, $4)
ON CONFLICT (at, owner, grp) DO UPDATE SET used = excluded.used`
	selectLedgerTimes = `SELECT at FROM ledger_sample ORDER BY at`
	selectLedgerUse   = `SELECT owner, grp, used FROM ledger_use WHERE at = $1`

	deleteLedgerSamples = `DELETE FROM ledger_sample WHERE at < $1`
	deleteLedgerUses    = `DELETE FROM ledger_use WHERE at < $1`
)

// maxLedgerUse bounds what a submitter can have used, so that sums fit into 64 bits.
const maxLedgerUse = 1 << 56

// AddLedgerSample stores what the negotiator's ledger says at an instant.
func (s *Store) AddLedgerSample(ctx context.Context, sample *accounting.LedgerSample) error {
	if m := accounting.MonthOf(sample.At); m < firstMonth || m >= lastMonth {
		return fmt.Errorf("sample of the ledger: %w: its time %s is not between 2000 and 2200", roost.Invalid,
			sample.At.Time())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	names := s.names.draft()
	err := s.inTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, insertLedgerSample, int64(sample.At)); err != nil {
			return err
		}
		for _, u := range sample.Used {
			_, err := tx.ExecContext(ctx, insertLedgerUse, int64(sample.At), names.id(ownerName, u.Owner),
				names.id(groupName, u.Group), min(max(u.Used, 0), maxLedgerUse))
			if err != nil {
				return err
			}
		}
		return names.store(ctx, tx)
	})
	if err != nil {
		return fmt.Errorf("sample of the ledger: %w", err)
	}
	names.commit()
	return nil
}

// ledgerTimes returns the times of the samples that wait for their comparison.
func ledgerTimes(ctx context.Context, db querier) (all []accounting.Millis, err error) {
	err = queryAll(ctx, db, func(rows *sql.Rows) error {
		var at accounting.Millis
		err := rows.Scan(&at)
		all = append(all, at)
		return err
	}, selectLedgerTimes)
	return all, err
}

// ledgerSample returns the sample of a time.
func (s ledgerComparer) ledgerSample(ctx context.Context, at accounting.Millis) (sample accounting.LedgerSample,
	err error) {
	sample.At = at
	err = queryAll(ctx, s.engine.reader(), func(rows *sql.Rows) error {
		var owner, group int64
		var u accounting.SubmitterUse
		err := rows.Scan(&owner, &group, &u.Used)
		u.Submitter = accounting.Submitter{Owner: s.names.text(owner), Group: s.names.text(group)}
		sample.Used = append(sample.Used, u)
		return err
	}, selectLedgerUse, int64(at))
	return sample, err
}
