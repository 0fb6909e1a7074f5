package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// Ingest stores entries of a source's feed and the number of the one that comes next.
// Entries that come again change nothing. Where numbers are missing, a gap is noted. host
// is the node of the schedd. Numbers rise within entries.
func (s *Store) Ingest(ctx context.Context, source accounting.SourceID, host string,
	entries []accounting.FeedEntry) error {
	if len(entries) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refresh(ctx); err != nil {
		return s.engine.explain(err)
	}
	b := s.newBatch(source, host)
	for i := range entries {
		if i > 0 && entries[i].Number <= entries[i-1].Number {
			return fmt.Errorf("source %s: %w: entry %d comes after %d", source, roost.Invalid, entries[i].Number,
				entries[i-1].Number)
		}
		if err := b.add(&entries[i], entries[i].Number); err != nil {
			return err
		}
	}
	b.advance(entries)
	return b.commit(ctx)
}

// Restore stores entries that were made from histories, to fill the gap before the entry
// with the number next. Their own numbers do not count. They never replace what an entry
// from next on has stored.
func (s *Store) Restore(ctx context.Context, source accounting.SourceID, host string, next uint64,
	entries []accounting.FeedEntry) error {
	if len(entries) == 0 || next == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refresh(ctx); err != nil {
		return s.engine.explain(err)
	}
	b := s.newBatch(source, host)
	for i := range entries {
		if err := b.add(&entries[i], next-1); err != nil {
			return err
		}
	}
	return b.commit(ctx)
}

// feedGap is a row of the table gap.
type feedGap struct{ first, next uint64 }

// batch is a set of entries of one source on their way into the store.
type batch struct {
	store  *Store
	before sourceRow // the source as it was
	source sourceRow // as it is with the batch
	names  *nameDraft
	gaps   []feedGap

	jobs     map[jobKey]*jobRow
	attempts map[attemptKey]*attemptRow
	rows     rowSet
	usage    map[usageKey]int // index in rows.usage
	marks    markSet
}

type usageKey struct {
	attemptKey
	hour accounting.Millis
}

func (s *Store) newBatch(source accounting.SourceID, host string) *batch {
	row := s.sources.row(source, host)
	return &batch{
		store: s, before: row, source: row, names: s.names.draft(),
		jobs: map[jobKey]*jobRow{}, attempts: map[attemptKey]*attemptRow{}, usage: map[usageKey]int{},
		marks: s.newMarkSet(),
	}
}

// advance notes the number that comes next, and what is missing before the entries.
func (b *batch) advance(entries []accounting.FeedEntry) {
	next := b.source.next
	for i := range entries {
		n := entries[i].Number
		if n < next {
			continue
		}
		if n > next {
			b.gaps = append(b.gaps, feedGap{next, n})
		}
		next = n + 1
	}
	b.source.next = next
}

// add encodes an entry. Of entries of one key the last remains.
func (b *batch) add(e *accounting.FeedEntry, number uint64) error {
	n := int64(number)
	switch {
	case e.Job != nil:
		key, err := b.jobKey(e.Job.JobKey, e.Number)
		if err != nil {
			return err
		}
		if key.month != accounting.MonthOf(e.Job.Submitted) {
			return b.refuse(e.Number, "the job was submitted in another month than its key says")
		}
		b.jobs[key] = encodeJob(e.Job, key, n, b.names)
	case e.Attempt != nil:
		key, err := b.attemptKey(e.Attempt.AttemptKey, e.Number)
		if err != nil {
			return err
		}
		b.attempts[key] = encodeAttempt(e.Attempt, key, n, b.names)
		b.source.skew = max(b.source.skew, e.Attempt.Skew())
	case e.Action != nil:
		key, err := b.jobKey(e.Action.JobKey, e.Number)
		if err != nil {
			return err
		}
		b.rows.actions = append(b.rows.actions, encodeAction(e.Action, key, n, b.names))
	case e.Usage != nil:
		key, err := b.attemptKey(e.Usage.AttemptKey, e.Number)
		if err != nil {
			return err
		}
		b.addUsage(e.Usage, key, n)
	default:
		return b.refuse(e.Number, "it has nothing")
	}
	return nil
}

func (b *batch) addUsage(u *accounting.UsageHour, key attemptKey, number int64) {
	row, k := encodeUsage(u, key, number), usageKey{key, u.Hour.Hour()}
	if i, ok := b.usage[k]; ok {
		b.rows.usage[i] = row
		return
	}
	b.usage[k] = len(b.rows.usage)
	b.rows.usage = append(b.rows.usage, row)
}

func (b *batch) refuse(number uint64, why string) error {
	return fmt.Errorf("source %s, entry %d: %w: %s", b.source.source, number, roost.Invalid, why)
}

// The months that a key may have. A file is made for each.
const (
	firstMonth = accounting.Month(2000 * 12)
	lastMonth  = accounting.Month(2200 * 12)
)

func (b *batch) jobKey(k accounting.JobKey, number uint64) (jobKey, error) {
	if k.Source != b.source.source {
		return jobKey{}, b.refuse(number, "its key names another source")
	}
	if k.Month < firstMonth || k.Month >= lastMonth {
		return jobKey{}, b.refuse(number, "its key has no month between 2000 and 2200")
	}
	if k.Seq > 1<<62 {
		return jobKey{}, b.refuse(number, "its job number is too high")
	}
	return jobKey{k.Month, b.source.id, int64(k.Seq)}, nil
}

func (b *batch) attemptKey(k accounting.AttemptKey, number uint64) (attemptKey, error) {
	job, err := b.jobKey(k.JobKey, number)
	return attemptKey{job, int64(k.Index), int64(k.Attempt)}, err
}

// commit writes the batch.
func (b *batch) commit(ctx context.Context) (err error) {
	defer func() { b.store.stale = err != nil }()
	session, err := b.store.engine.begin(ctx)
	if err != nil {
		return err
	}
	defer session.rollback()
	if err := b.write(ctx, session); err != nil {
		return b.store.engine.explain(err)
	}
	err = session.commit(ctx,
		func(tx *sql.Tx) error {
			if err := b.names.store(ctx, tx); err != nil {
				return err
			}
			if err := b.before.store(ctx, tx); err != nil {
				return err
			}
			return b.store.storeMarks(ctx, tx, &b.marks, false)
		},
		func(tx *sql.Tx) error {
			noted := accounting.MillisOf(time.Now())
			for _, g := range b.gaps {
				if _, err := tx.ExecContext(ctx, insertGap, b.source.id, int64(g.first), int64(g.next),
					int64(noted)); err != nil {
					return err
				}
			}
			if err := b.source.store(ctx, tx); err != nil {
				return err
			}
			return b.store.storeMarks(ctx, tx, &b.marks, true)
		})
	if err != nil {
		return err
	}
	b.names.commit()
	b.store.sources.put(b.source)
	return nil
}

// write finds what the rows replace, notes which hours and charges change, and stores the
// rows in the session.
func (b *batch) write(ctx context.Context, session rowSession) error {
	stored, err := session.jobs(ctx, b.jobKeys())
	if err != nil {
		return err
	}
	if err := b.markJobs(ctx, session, stored); err != nil {
		return err
	}
	if err := b.markAttempts(ctx, session, stored); err != nil {
		return err
	}
	for _, j := range b.jobs {
		b.rows.jobs = append(b.rows.jobs, j)
	}
	for _, a := range b.attempts {
		b.rows.attempts = append(b.rows.attempts, a)
	}
	slices.SortFunc(b.rows.jobs, func(x, y *jobRow) int {
		return attemptKey{jobKey: x.jobKey}.compare(attemptKey{jobKey: y.jobKey})
	})
	slices.SortFunc(b.rows.attempts, func(x, y *attemptRow) int { return x.compare(y.attemptKey) })
	return session.store(ctx, &b.rows)
}

// jobKeys returns the keys of the jobs, and of the jobs of the attempts.
func (b *batch) jobKeys() []jobKey {
	seen := map[jobKey]bool{}
	for k := range b.jobs {
		seen[k] = true
	}
	for k := range b.attempts {
		seen[k.jobKey] = true
	}
	keys := make([]jobKey, 0, len(seen))
	for k := range seen {
		keys = append(keys, k)
	}
	return keys
}

// markJobs marks the attempts of jobs whose names differ from those stored.
func (b *batch) markJobs(ctx context.Context, session rowSession, stored map[jobKey]jobNames) error {
	var changed []jobKey
	owners := map[jobKey]int64{}
	for k, j := range b.jobs {
		old, ok := stored[k]
		if j.isNew = !ok; ok && old == j.names {
			continue
		}
		changed = append(changed, k)
		if !ok || old.owner != j.names.owner {
			owners[k] = j.names.owner
		}
	}
	if len(changed) == 0 {
		return nil
	}
	attempts, err := session.attemptsOf(ctx, changed)
	if err != nil {
		return err
	}
	for k, placed := range attempts {
		b.marks.addAttempt(k, placed, true)
	}
	if len(attempts) == 0 {
		return nil
	}
	return session.setOwners(ctx, owners)
}

// markAttempts marks the hours of the attempts and of the rows that they replace, and
// sets their owners.
func (b *batch) markAttempts(ctx context.Context, session rowSession, stored map[jobKey]jobNames) error {
	keys := make([]attemptKey, 0, len(b.attempts))
	for k, a := range b.attempts {
		keys = append(keys, k)
		b.marks.addAttempt(k, a.placed, false)
		owner := stored[k.jobKey].owner
		if j, ok := b.jobs[k.jobKey]; ok {
			owner = j.names.owner
		}
		a.values[ownerColumn] = owner
	}
	old, err := session.attempts(ctx, keys)
	if err != nil {
		return err
	}
	for k, a := range b.attempts {
		placed, found := old[k]
		if a.isNew = !found; found {
			b.marks.addAttempt(k, placed, false)
		}
	}
	return nil
}
