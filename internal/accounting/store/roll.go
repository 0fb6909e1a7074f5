package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/failpoint"
)

// maxRunHours is how many hours that follow each other are computed together.
const maxRunHours = 24

// dirtyHour is a row of the table dirty.
type dirtyHour struct {
	hour accounting.Millis
	mark int64
}

const (
	selectDirty = `SELECT hour, mark FROM dirty ORDER BY hour LIMIT $1`
	countDirty  = `SELECT count(*) FROM dirty`
	deleteDirty = `DELETE FROM dirty WHERE hour = $1 AND mark = $2`
)

// Roll computes the roll-ups of hours that changed, at most limit of them, the oldest
// first. It returns how many it computed: call it again while that is limit. Attempts and
// machines count until now.
func (s *Store) Roll(ctx context.Context, now accounting.Millis, limit int) (int, error) {
	now, err := s.markPassedHours(ctx, now)
	if err != nil {
		return 0, fmt.Errorf("roll-up: %w", err)
	}
	if err := s.sumOldMonths(ctx); err != nil {
		return 0, fmt.Errorf("roll-up: %w", err)
	}
	var dirty []dirtyHour
	err = queryAll(ctx, s.engine.reader(), func(rows *sql.Rows) error {
		var d dirtyHour
		err := rows.Scan(&d.hour, &d.mark)
		dirty = append(dirty, d)
		return err
	}, selectDirty, limit)
	if err != nil {
		return 0, fmt.Errorf("roll-up: %w", s.engine.explain(err))
	}
	done := 0
	for done < len(dirty) {
		n := runLength(dirty[done:])
		if err := s.rollRun(ctx, dirty[done:done+n], now); err != nil {
			return done, fmt.Errorf("roll-up of %s: %w", dirty[done].hour.Time().Format("2006-01-02 15:00"), err)
		}
		done += n
	}
	return done, nil
}

// DirtyHours returns how many hours have to be computed.
func (s *Store) DirtyHours(ctx context.Context) (n int, err error) {
	err = s.engine.reader().QueryRowContext(ctx, countDirty).Scan(&n)
	return n, s.engine.explain(err)
}

// runLength returns how many of the first hours follow each other on one day.
func runLength(dirty []dirtyHour) int {
	n := 1
	for n < min(len(dirty), maxRunHours) && dirty[n].hour == dirty[n-1].hour+accounting.HourMillis &&
		dirty[n].hour.Day() == dirty[0].hour.Day() {
		n++
	}
	return n
}

const (
	selectFirstOpen    = `SELECT coalesce(min(begins), 0) FROM attempt WHERE span = -1 AND begins > 0`
	selectFirstMachine = `SELECT coalesce(min(at), 0) FROM machine`
)

// markPassedHours marks the hours since the last roll-up. What ran then counts only until
// then. It returns the time of this roll-up, which is not before the last one: if the
// clock was set back, hours would lose what they have.
func (s *Store) markPassedHours(ctx context.Context, now accounting.Millis) (accounting.Millis, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now <= s.rolled {
		return s.rolled, nil
	}
	from := s.rolled
	if from == 0 {
		var err error
		if from, err = s.firstUnmarked(ctx, now); err != nil {
			return 0, s.engine.explain(err)
		}
	}
	marks := s.newMarkSet()
	marks.addHours(from, now)
	err := s.inTx(ctx, func(tx *sql.Tx) error {
		if err := s.storeMarks(ctx, tx, &marks, true); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, upsertCounter, "rolled", int64(now))
		return err
	})
	if err == nil {
		s.rolled = now
	}
	return now, err
}

// firstUnmarked returns when the first attempt that runs or the first machine began.
// Nothing has marked their hours before the first roll-up.
func (s *Store) firstUnmarked(ctx context.Context, now accounting.Millis) (accounting.Millis, error) {
	first := now
	parts, err := s.engine.partitions(ctx, 0, 0)
	if err != nil {
		return 0, err
	}
	read := func(db *sql.DB, text string) error {
		var at accounting.Millis
		err := db.QueryRowContext(ctx, text).Scan(&at)
		if at != 0 {
			first = min(first, at)
		}
		return err
	}
	for _, p := range parts {
		if err := read(p.db, selectFirstOpen); err != nil {
			return 0, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return first, read(s.engine.reader(), selectFirstMachine)
}

// rollRun computes hours that follow each other on one day.
func (s *Store) rollRun(ctx context.Context, dirty []dirtyHour, now accounting.Millis) error {
	hours := accounting.TimeRange{From: dirty[0].hour, To: dirty[len(dirty)-1].hour + accounting.HourMillis}
	sums := newHourSums(hours, now)
	s.mu.Lock()
	err := s.capacity(ctx, s.engine.reader(), hours.From, hours.To, now, sums)
	s.mu.Unlock()
	if err != nil {
		return s.engine.explain(err)
	}
	if err := s.addAttempts(ctx, sums); err != nil {
		return s.engine.explain(err)
	}
	failpoint.Point(failpoint.AccountantBeforeRoll)
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.inTx(ctx, func(tx *sql.Tx) error {
		if err := s.storeSums(ctx, tx, sums); err != nil {
			return err
		}
		for _, d := range dirty {
			if _, err := tx.ExecContext(ctx, deleteDirty, int64(d.hour), d.mark); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		s.summed.add(accounting.MonthOf(hours.From))
	}
	return err
}

const selectRolled = `SELECT a.attempt, a.started, a.ended, a.node, a.cpu, a.mem, a.gpus, a.wall, a.user_cpu,
 a.system_cpu, a.suspended, a.useful, a.peak_mem, a.cause, a.exit_code, a.signal, a.segments, a.owner,
 coalesce(j.grp, 0), coalesce(j.project, 0), coalesce(j.queue, 0), coalesce(j.band, 0), coalesce(j.eligible, 0),
 coalesce(j.ended, 0)
FROM attempt a LEFT JOIN job j ON j.month = a.month AND j.source = a.source AND j.seq = a.seq
WHERE a.span = $1 AND a.begins >= $2 AND a.begins < $3`

// addAttempts adds all attempts that ran in the hours of sums. There is a probe for each
// class of lengths, which reads little more than what ran then. One index on ends would
// read all that ended since.
func (s *Store) addAttempts(ctx context.Context, sums *hourSums) error {
	parts, err := s.engine.partitions(ctx, 0, accounting.MonthOf(sums.hours.To))
	if err != nil {
		return err
	}
	for _, p := range parts {
		for class := int64(-1); class <= longestSpan; class++ {
			from := accounting.Millis(1)
			if class >= 0 {
				from = max(from, sums.hours.From-spanMillis(class))
			}
			err := queryAll(ctx, p.db, func(rows *sql.Rows) error { return s.addRow(rows, sums) },
				selectRolled, class, int64(from), int64(sums.hours.To))
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
	}
	return nil
}

// addRow adds a row of selectRolled.
func (s *Store) addRow(rows *sql.Rows, sums *hourSums) error {
	var a rolledAttempt
	var segments []byte
	var jobEnded accounting.Millis
	err := rows.Scan(&a.Attempt, &a.Started, &a.Ended, &a.node, &a.Held.CPU, &a.Held.Memory, &a.Held.GPUs, &a.Wall,
		&a.UserCPU, &a.SystemCPU, &a.Suspended, &a.Useful, &a.Peak.Memory, &a.Cause, &a.ExitCode, &a.Signal, &segments,
		&a.job.owner, &a.job.group, &a.job.project, &a.job.queue, &a.job.band, &a.job.eligible, &jobEnded)
	if err != nil {
		return err
	}
	if a.Segments, err = unpackSegments(segments); err != nil {
		return err
	}
	sums.add(&a, jobEnded)
	return nil
}
