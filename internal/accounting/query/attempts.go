package query

import (
	"cmp"
	"iter"
	"slices"

	"github.com/roost-batch/roost/internal/accounting"
)

// LiveAttempts is what ran in the pool at a time. A record without an attempt number is a
// job with tasks that wait, and its index is the first of them.
type LiveAttempts struct {
	At      accounting.Millis
	Records []accounting.AttemptRecord
	Missing []string // why those of some schedds are missing
}

// attempts emits the attempts of a selection, or those of one job. Those that run come
// after them if they are wanted.
func (q *Query) attempts(r accounting.Reader, filter accounting.Filter, now *Now, emit func(line []byte) error) error {
	var live *LiveAttempts
	if q.Live != "" { // first: what ends in the meantime is in the list or in the store
		live = now.Live(q.Waiting)
	}
	stored, err := q.endedAttempts(r, filter)
	if err != nil {
		return err
	}
	n, seen := 0, map[accounting.AttemptKey]bool{}
	for a, err := range stored {
		if err != nil {
			return err
		}
		if n++; n > q.limit() {
			return nil
		}
		if live != nil && a.Ended >= live.At-maxFeedDelay {
			seen[a.AttemptKey] = true
		}
		if err := emitLine(&AttemptLine{Job: *a.Job, Attempt: a.AttemptEntry}, emit); err != nil {
			return err
		}
	}
	if live == nil {
		return nil
	}
	return q.liveAttempts(live, filter, seen, q.limit()-n, emit)
}

// maxFeedDelay bounds by how much an end may seem to be before the list of what ran. The
// clocks of a schedd and of the accountant may differ.
const maxFeedDelay = 10 * 60_000

// endedAttempts returns the attempts of the selection, or those of one job.
func (q *Query) endedAttempts(r accounting.Reader, filter accounting.Filter) (
	iter.Seq2[accounting.AttemptRecord, error], error) {
	switch {
	case q.Live == LiveOnly:
		return func(func(accounting.AttemptRecord, error) bool) {}, nil
	case q.Job != 0:
		return q.jobAttempts(r, filter)
	}
	by := accounting.ByEnd
	switch q.Time {
	case ByStart:
		by = accounting.ByStart
	case BySubmit:
		by = accounting.BySubmit
	}
	return r.Attempts(accounting.Selection{Range: q.timeRange(), By: by, Filter: filter}), nil
}

// jobAttempts returns the attempts of the job of the question.
func (q *Query) jobAttempts(r accounting.Reader, filter accounting.Filter) (
	iter.Seq2[accounting.AttemptRecord, error], error) {
	job, err := q.job(r, filter)
	if err != nil {
		return nil, err
	}
	return func(yield func(accounting.AttemptRecord, error) bool) {
		for a, err := range r.JobAttempts(job.JobKey) {
			if !yield(accounting.AttemptRecord{AttemptEntry: a, Job: &job}, err) {
				return
			}
		}
	}, nil
}

// liveAttempts emits what runs, the longest first, and then the jobs that wait, but none
// of those seen.
func (q *Query) liveAttempts(live *LiveAttempts, filter accounting.Filter, seen map[accounting.AttemptKey]bool,
	limit int, emit func(line []byte) error) error {
	var list []*accounting.AttemptRecord
	for i := range live.Records {
		a := &live.Records[i]
		if q.wantsLive(a) && filter.MatchesAttempt(a) && !seen[a.AttemptKey] {
			list = append(list, a)
		}
	}
	slices.SortStableFunc(list, func(a, b *accounting.AttemptRecord) int {
		return cmp.Or(compareWaiting(a, b), cmp.Compare(liveSince(a), liveSince(b)))
	})
	for _, a := range list[:min(len(list), max(limit, 0))] {
		if err := emitLine(&AttemptLine{Job: *a.Job, Attempt: a.AttemptEntry}, emit); err != nil {
			return err
		}
	}
	for _, why := range live.Missing {
		if err := emitLine(&AttemptLine{Missing: why}, emit); err != nil {
			return err
		}
	}
	return nil
}

// compareWaiting orders jobs that wait after attempts.
func compareWaiting(a, b *accounting.AttemptRecord) int {
	switch {
	case a.Attempt == 0 && b.Attempt != 0:
		return 1
	case a.Attempt != 0 && b.Attempt == 0:
		return -1
	}
	return 0
}

// liveSince returns since when an attempt is there, or since when a job waits.
func liveSince(a *accounting.AttemptRecord) accounting.Millis {
	return cmp.Or(a.Started, a.Assigned, a.Job.Submitted)
}

// wantsLive reports whether the question is about a live attempt. That is one of its job,
// or one that began before the end of its range.
func (q *Query) wantsLive(a *accounting.AttemptRecord) bool {
	if q.Job != 0 {
		return a.Job.Seq == q.Job && a.Job.Host == q.Host
	}
	return q.To == 0 || liveSince(a) < q.To
}
