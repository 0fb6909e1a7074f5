package store

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"

	"github.com/roost-batch/roost/internal/accounting"
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
	for h := begin.Hour(); h <= end; h += accounting.HourMillis {
		m.hours[h] = true
	}
}

const (
	upsertDirty = `INSERT INTO dirty (hour, mark) VALUES ($1, $2) ON CONFLICT (hour) DO UPDATE SET mark = excluded.mark`
	upsertDue   = `INSERT INTO due (month, source, seq, idx, attempt, mark) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (month, source, seq, idx, attempt) DO UPDATE SET mark = excluded.mark`
)

// storeMarks writes marks with a new number. Charges that are due because their attempt
// came are written only if all is set: the attempt comes again if that is lost.
func (s *Store) storeMarks(ctx context.Context, tx *sql.Tx, m *markSet, all bool) error {
	s.mark++
	hours, err := tx.PrepareContext(ctx, upsertDirty)
	if err != nil {
		return err
	}
	defer hours.Close()
	for _, h := range slices.Sorted(maps.Keys(m.hours)) {
		if h < s.frozen {
			continue
		}
		if _, err := hours.ExecContext(ctx, int64(h), s.mark); err != nil {
			return err
		}
	}
	due, err := tx.PrepareContext(ctx, upsertDue)
	if err != nil {
		return err
	}
	defer due.Close()
	for _, k := range slices.SortedFunc(maps.Keys(m.due), attemptKey.compare) {
		if !all && !m.due[k] {
			continue
		}
		if _, err := due.ExecContext(ctx, int64(k.month), k.source, k.seq, k.index, k.attempt, s.mark); err != nil {
			return err
		}
	}
	_, err = tx.ExecContext(ctx, upsertCounter, "mark", s.mark)
	return err
}
