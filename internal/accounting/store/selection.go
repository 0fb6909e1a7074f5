package store

import (
	"cmp"
	"database/sql"
	"iter"
	"math"

	"github.com/roost-batch/roost/internal/accounting"
)

// maxRows is the limit of a selection without one.
const maxRows = math.MaxInt64

// sqlRange returns the bounds of the query. The time of the position narrows them, so
// that a page deep in the list costs no more than the first.
func sqlRange(s *accounting.Selection) (from, to accounting.Millis) {
	from, to = bounds(s.Range)
	if s.After == nil {
		return from, to
	}
	if s.Descending {
		return from, min(to, s.After.Time+1)
	}
	return max(from, s.After.Time), to
}

// position returns the place to continue after, as the arguments of a statement. ok is
// false if its source is not known, and then nothing comes after it.
func (r reader) position(s *accounting.Selection, columns int) (args []any, ok bool) {
	if s.After == nil {
		start := int64(math.MinInt64)
		if s.Descending {
			start = math.MaxInt64
		}
		for range columns {
			args = append(args, start)
		}
		return args, true
	}
	p := s.After
	source, ok := r.store.sources.find(p.Source)
	return []any{
		int64(p.Time), int64(p.Month), source.id, int64(p.Seq), int64(p.Index), int64(p.Attempt),
	}[:columns], ok
}

// selection returns the kind of a selection and the id of its name. The limit is the
// query's only if the query checks the whole filter.
func (r reader) selection(s *accounting.Selection, jobs bool) (kind selectionKind, id int64, limit int64) {
	kind = selectionKind{by: s.By, desc: s.Descending}
	rest := s.Filter
	switch {
	case rest.Owner != "":
		kind.of, id, rest.Owner = ofOwner, r.store.names.find(ownerName, rest.Owner), ""
	case rest.Node != "" && !jobs:
		kind.of, id, rest.Node = ofNode, r.store.names.find(nodeName, rest.Node), ""
	}
	limit = maxRows
	if rest == (accounting.Filter{}) && s.Limit > 0 {
		limit = int64(s.Limit)
	}
	return kind, id, limit
}

func (r reader) Attempts(s accounting.Selection) iter.Seq2[accounting.AttemptRecord, error] {
	kind, id, limit := r.selection(&s, false)
	from, to := sqlRange(&s)
	position, ok := r.position(&s, 6)
	if !ok {
		return none[accounting.AttemptRecord]
	}
	args := append([]any{int64(from), int64(to)}, position...)
	args = append(args, limit)
	if kind.of != ofAll {
		args = append(args, id)
	}
	parts, err := r.monthsUntil(to)
	if err != nil {
		return failed[accounting.AttemptRecord](err)
	}
	rows := mergeRows(r.ctx, parts, rowQuery[sortedAttempt]{attemptSelections()[kind], args, r.scanAttempt(s.By)},
		func(a, b *sortedAttempt) bool { return a.before(b, s.Descending) })
	return func(yield func(accounting.AttemptRecord, error) bool) {
		n := 0
		for row, err := range rows {
			if err == nil && !s.Filter.MatchesAttempt(&row.AttemptRecord) {
				continue
			}
			if n++; !yield(row.AttemptRecord, err) || n == s.Limit {
				return
			}
		}
	}
}

// sortedAttempt is an attempt with its place in the order of a selection.
type sortedAttempt struct {
	accounting.AttemptRecord
	time accounting.Millis
	key  attemptKey
}

func (a *sortedAttempt) before(b *sortedAttempt, descending bool) bool {
	c := cmp.Or(cmp.Compare(a.time, b.time), a.key.compare(b.key))
	return c < 0 != descending && c != 0
}

// scanAttempt returns a function that reads attempts with their jobs. Attempts of a job
// that follow each other share it.
func (r reader) scanAttempt(by accounting.TimeField) func(*sql.Rows) (sortedAttempt, error) {
	values := newRowValues(attemptColumnCount + jobColumnCount)
	var last *accounting.JobEntry
	return func(rows *sql.Rows) (s sortedAttempt, err error) {
		if err := values.scan(rows); err != nil {
			return s, err
		}
		var source int64
		if s.AttemptEntry, source, err = values.attempt(r.store); err != nil {
			return s, err
		}
		if last == nil || last.JobKey != s.JobKey {
			if last = values.job(r.store, attemptColumnCount); last == nil {
				last = &accounting.JobEntry{JobKey: s.JobKey, Host: r.store.sources.byID(source).host}
			}
			if err := values.err(); err != nil {
				return s, err
			}
		}
		s.Job = last
		s.key = attemptKey{jobKey{s.Month, source, int64(s.Seq)}, int64(s.Index), int64(s.Attempt)}
		switch by {
		case accounting.ByEnd:
			s.time = s.Ended
		case accounting.ByStart:
			s.time = s.Started
		case accounting.BySubmit:
			s.time = s.Job.Submitted
		}
		return s, nil
	}
}

func (r reader) Jobs(s accounting.Selection) iter.Seq2[accounting.JobEntry, error] {
	kind, id, limit := r.selection(&s, true)
	from, to := sqlRange(&s)
	position, ok := r.position(&s, 4)
	if !ok {
		return none[accounting.JobEntry]
	}
	args := append([]any{int64(from), int64(to)}, position...)
	args = append(args, limit)
	if kind.of != ofAll {
		args = append(args, id)
	}
	parts, err := r.monthsUntil(to)
	if err != nil {
		return failed[accounting.JobEntry](err)
	}
	rows := mergeRows(r.ctx, parts, rowQuery[*accounting.JobEntry]{jobSelections()[kind], args, r.store.scanJob()},
		func(a, b **accounting.JobEntry) bool { return r.jobBefore(*a, *b, &s) })
	return func(yield func(accounting.JobEntry, error) bool) {
		n := 0
		for job, err := range rows {
			if err != nil {
				yield(accounting.JobEntry{}, err)
				return
			}
			if !s.Filter.MatchesJob(job) {
				continue
			}
			if n++; !yield(*job, nil) || n == s.Limit {
				return
			}
		}
	}
}

// jobBefore reports whether a comes before b in the order of a selection.
func (r reader) jobBefore(a, b *accounting.JobEntry, s *accounting.Selection) bool {
	time := func(j *accounting.JobEntry) accounting.Millis {
		switch s.By {
		case accounting.ByEnd:
			return j.Ended
		case accounting.ByStart:
			return j.Eligible
		}
		return j.Submitted
	}
	key := func(j *accounting.JobEntry) attemptKey {
		source, _ := r.store.sources.find(j.Source)
		return attemptKey{jobKey: jobKey{j.Month, source.id, int64(j.Seq)}}
	}
	c := cmp.Or(cmp.Compare(time(a), time(b)), key(a).compare(key(b)))
	return c < 0 != s.Descending && c != 0
}
