package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

const (
	selectRates = `SELECT id, document FROM rate ORDER BY start, id`
	insertRate  = `INSERT INTO rate (id, grp, start, document)
VALUES ((SELECT coalesce(max(id), 0) + 1 FROM rate), $1, $2, $3) ON CONFLICT (grp, start) DO NOTHING`
)

// Rates returns all rates in the order of their begin.
func (s *Store) Rates(ctx context.Context) ([]accounting.Rate, error) {
	rates, err := readRates(ctx, s.engine.reader())
	return rates, s.engine.explain(err)
}

func readRates(ctx context.Context, db querier) ([]accounting.Rate, error) {
	var rates []accounting.Rate
	err := queryAll(ctx, db, func(rows *sql.Rows) error {
		var id int64
		var document string
		if err := rows.Scan(&id, &document); err != nil {
			return err
		}
		var r accounting.Rate
		if err := json.Unmarshal([]byte(document), &r); err != nil {
			return fmt.Errorf("rate %d: %w", id, err)
		}
		r.ID = id
		rates = append(rates, r)
		return nil
	}, selectRates)
	return rates, err
}

// AddRate adds a rate. Rates are never changed: a later one of the same group replaces it
// from its begin on. What ran since then is charged again if Rerate is called.
func (s *Store) AddRate(ctx context.Context, r accounting.Rate) error {
	if err := r.Check(); err != nil {
		return err
	}
	r.ID = 0
	document, err := json.Marshal(r)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inPermanentTx(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, insertRate, r.Group, int64(r.From), string(document))
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n != 0 {
			return err
		}
		return fmt.Errorf("rate of group %q from %s: %w: there is one already; begin a millisecond later to replace it",
			r.Group, r.From.Time(), roost.Conflict)
	})
}
