package store

import (
	"context"
	"database/sql"
	"fmt"
	"sync"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// sourceRow is a row of the table source.
type sourceRow struct {
	id        int64
	source    accounting.SourceID
	host      string
	next      uint64 // 0: the source is not stored
	watermark accounting.Millis
	skew      int64
}

// sourceTable has all sources in memory.
type sourceTable struct {
	mu  sync.RWMutex
	all map[accounting.SourceID]sourceRow
	ids map[int64]accounting.SourceID
}

const (
	selectSources = `SELECT id, source, host, next, watermark, skew FROM source`
	upsertSource  = `INSERT INTO source (id, source, host, next, watermark, skew) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (id) DO UPDATE SET host = excluded.host, next = excluded.next, watermark = excluded.watermark,
 skew = excluded.skew`
)

func (t *sourceTable) load(ctx context.Context, db *sql.DB) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all, t.ids = map[accounting.SourceID]sourceRow{}, map[int64]accounting.SourceID{}
	return queryAll(ctx, db, func(rows *sql.Rows) error {
		var r sourceRow
		var id []byte
		if err := rows.Scan(&r.id, &id, &r.host, &r.next, &r.watermark, &r.skew); err != nil {
			return err
		}
		if len(id) != len(r.source) {
			return fmt.Errorf("source %d: %w: its id has %d bytes", r.id, roost.Internal, len(id))
		}
		r.source = accounting.SourceID(id)
		t.all[r.source], t.ids[r.id] = r, r.source
		return nil
	}, selectSources)
}

// row returns the source, or a new one that is not stored yet.
func (t *sourceTable) row(id accounting.SourceID, host string) sourceRow {
	t.mu.RLock()
	defer t.mu.RUnlock()
	r, ok := t.all[id]
	if !ok {
		r = sourceRow{id: int64(len(t.all)) + 1, source: id, next: 1}
	}
	if host = cleanText(host, maxNameBytes); host != "" {
		r.host = host
	}
	return r
}

// byID returns the source of a row's number.
func (t *sourceTable) byID(id int64) sourceRow {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.all[t.ids[id]]
}

// find returns a source that is stored.
func (t *sourceTable) find(id accounting.SourceID) (sourceRow, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	r, ok := t.all[id]
	return r, ok
}

// ofHost returns the sources of a host: more than one if it was installed again.
func (t *sourceTable) ofHost(host string) []sourceRow {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var rows []sourceRow
	for _, r := range t.all {
		if r.host == host {
			rows = append(rows, r)
		}
	}
	return rows
}

// put stores what has been committed.
func (t *sourceTable) put(r sourceRow) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all[r.source], t.ids[r.id] = r, r.source
}

func (r *sourceRow) store(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, upsertSource, r.id, r.source[:], r.host, int64(r.next), int64(r.watermark), r.skew)
	return err
}

// NextNumber returns the number of the entry of a source's feed that comes next.
func (s *Store) NextNumber(source accounting.SourceID) uint64 {
	return s.sources.row(source, "").next
}

// Advance notes that the feed of a source is complete up to a time of the schedd's clock.
// Months close by it.
func (s *Store) Advance(ctx context.Context, source accounting.SourceID, host string, until accounting.Millis) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.sources.row(source, host)
	if until <= r.watermark {
		return nil
	}
	r.watermark = until
	if err := s.inTx(ctx, func(tx *sql.Tx) error { return r.store(ctx, tx) }); err != nil {
		return fmt.Errorf("source %s: %w", source, err)
	}
	s.sources.put(r)
	return nil
}

const (
	insertGap  = `INSERT INTO gap (source, first, next, noted) VALUES ($1, $2, $3, $4) ON CONFLICT (source, first) DO NOTHING`
	selectGaps = `SELECT first, next, noted FROM gap WHERE source = $1 ORDER BY first`
	deleteGap  = `DELETE FROM gap WHERE source = $1 AND first = $2`
)

// CloseGap forgets a gap whose entries have been restored from histories.
func (s *Store) CloseGap(ctx context.Context, source accounting.SourceID, first uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.sources.row(source, "")
	return s.inTx(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, deleteGap, r.id, int64(first))
		return err
	})
}

const deleteGapsBefore = `DELETE FROM gap WHERE source = $1 AND next <= $2`

// SkipTo notes that what comes before the entry with the number next has been restored.
// The feed goes on there.
func (s *Store) SkipTo(ctx context.Context, source accounting.SourceID, host string, next uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.sources.row(source, host)
	r.next = max(r.next, next)
	err := s.inTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, deleteGapsBefore, r.id, int64(next)); err != nil {
			return err
		}
		return r.store(ctx, tx)
	})
	if err != nil {
		return fmt.Errorf("source %s: %w", source, err)
	}
	s.sources.put(r)
	return nil
}
