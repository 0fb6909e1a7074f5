package store

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"

	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/mutant"
)

// markSet is the hours and the charges that a change of rows makes wrong.
type markSet struct {
	rolled accounting.Millis
	hours  map[accounting.Millis]bool
	due    map[attemptKey]bool // true: because the job changed, which nobody finds out later
}

func (s *Store) newMarkSet() markSet {
	return markSet{s.rolled, map[accounting.Millis]bool{}, map[attemptKey]bool{}}
}

// addAttempt marks the hours of an attempt. One that runs counts up to the last roll-up;
// each roll-up marks the hours since.
func (m *markSet) addAttempt(k attemptKey, p placedAttempt, jobChanged bool) {
	if p.end != 0 {
		m.due[k] = m.due[k] || jobChanged
	}
	if end := cmp.Or(p.end, m.rolled); p.begin != 0 && end != 0 {
		m.addHours(p.begin, end)
	}
}

// addHours marks each hour from the one of begin to the one of end.
func (m *markSet) addHours(begin, end accounting.Millis) {
	if mutant.Active(mutant.LateHoursUnmarked) {
		return
	}
	for h := begin.Hour(); h <= end; h += accounting.HourMillis {
		m.hours[h] = true
	}
}

// storeMarks writes marks with a new number. Charges that are due because their attempt
// came are written only if all is set: the attempt comes again if that is lost.
func (s *Store) storeMarks(ctx context.Context, tx *sql.Tx, m *markSet, all bool) error {
	s.mark++
	var hours []int64
	for _, h := range slices.Sorted(maps.Keys(m.hours)) {
		if h >= s.frozen {
			hours = append(hours, int64(h))
		}
	}
	var due []attemptKey
	for _, k := range slices.SortedFunc(maps.Keys(m.due), attemptKey.compare) {
		if all || m.due[k] {
			due = append(due, k)
		}
	}
	if err := s.engine.putMarks(ctx, tx, hours, due, s.mark); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, upsertCounter, "mark", s.mark)
	return err
}

const (
	sqliteDirty = `INSERT INTO dirty (hour, mark) VALUES ($1, $2) ON CONFLICT (hour) DO UPDATE SET mark = excluded.mark`
	sqliteDue   = `INSERT INTO due (month, source, seq, idx, attempt, mark) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (month, source, seq, idx, attempt) DO UPDATE SET mark = excluded.mark`

	postgresDirty = `INSERT INTO dirty (hour, mark) SELECT hour, $2 FROM unnest($1::bigint[]) AS k (hour)
ON CONFLICT (hour) DO UPDATE SET mark = excluded.mark`
	postgresDue = `INSERT INTO due (month, source, seq, idx, attempt, mark) SELECT k.*, $6::bigint
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[]) AS k
ON CONFLICT (month, source, seq, idx, attempt) DO UPDATE SET mark = excluded.mark`
)

func (e *sqliteEngine) putMarks(ctx context.Context, tx *sql.Tx, hours []int64, due []attemptKey, mark int64) error {
	statement, err := tx.PrepareContext(ctx, sqliteDirty)
	if err != nil {
		return err
	}
	defer statement.Close()
	for _, h := range hours {
		if _, err := statement.ExecContext(uncancelled(ctx), h, mark); err != nil {
			return err
		}
	}
	if statement, err = tx.PrepareContext(ctx, sqliteDue); err != nil {
		return err
	}
	defer statement.Close()
	for _, k := range due {
		_, err := statement.ExecContext(uncancelled(ctx), int64(k.month), k.source, k.seq, k.index, k.attempt, mark)
		if err != nil {
			return err
		}
	}
	return nil
}

// putMarks sends all marks of a kind in one statement: each statement is a round trip.
func (e *postgresEngine) putMarks(ctx context.Context, tx *sql.Tx, hours []int64, due []attemptKey, mark int64) error {
	if len(hours) > 0 {
		if _, err := tx.ExecContext(ctx, postgresDirty, hours, mark); err != nil {
			return err
		}
	}
	if len(due) == 0 {
		return nil
	}
	a := attemptArrays(due)
	_, err := tx.ExecContext(ctx, postgresDue, a.months, a.sources, a.seqs, a.indexes, a.attempts, mark)
	return err
}
