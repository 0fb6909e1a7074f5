package store

import (
	"slices"
	"testing"

	"github.com/roost-batch/roost/internal/accounting"
)

// TestW17Filters puts SQL into each filter of the reports. Each finds what has that name,
// which is nothing, and the store stays as it is.
func TestW17Filters(t *testing.T) {
	feed := testFeed(1, 20)
	texts := []string{`'`, `''`, `' OR '1'='1`, `'; DROP TABLE job; --`, `" OR ""="`, `\'; DROP TABLE attempt; --`, `%`, `_`,
		`ann' --`, `ann'/*`, `') OR 1=1 --`, `$1`, `?1`, `:owner`, "ann\x00", `ann' UNION SELECT name FROM person --`}
	onEngines(t, func(t *testing.T, options func() Options) {
		s := openStore(t, options())
		ingestAll(t, s, 1, feed, 500)
		compute(t, s, workloadEnd)
		before, err := s.Digest(t.Context())
		must(t, err)
		r, reader := s.Reporter(t.Context()), s.Reader(t.Context())
		for _, text := range texts {
			for name, f := range map[string]accounting.Filter{"owner": {Owner: text}, "group": {Group: text},
				"project": {Project: text}, "queue": {Queue: text}, "host": {Host: text}, "node": {Node: text}} {
				for a, err := range reader.Attempts(accounting.Selection{Filter: f, Limit: 100}) {
					if err == nil {
						t.Errorf("attempts with %s %q finds %+v", name, text, a)
					}
				}
				if name == "host" || name == "node" {
					continue // sums have neither
				}
				lines, err := r.UsageLines(accounting.UsageQuery{By: accounting.ByOwner, Filter: f})
				if err == nil && len(lines) > 0 {
					t.Errorf("usage with %s %q finds %+v", name, text, lines)
				}
				efficiency, err := r.Efficiency(accounting.TimeRange{}, f, 100)
				if err == nil && len(efficiency) > 0 {
					t.Errorf("efficiency with %s %q finds %+v", name, text, efficiency)
				}
			}
			if lines, err := r.EndLines(accounting.TimeRange{}, text, true); err == nil && len(lines) > 0 {
				t.Errorf("ends of %q: %+v", text, lines)
			}
		}
		after, err := s.Digest(t.Context())
		must(t, err)
		if !slices.Equal(before, after) {
			t.Errorf("the store has changed: %q", differentDigests(before, after))
		}
		if lines, err := r.UsageLines(accounting.UsageQuery{By: accounting.ByOwner}); err != nil || len(lines) == 0 {
			t.Errorf("without a filter: %v, %v", lines, err)
		}
	})
}

// TestW17ExactFilters compares what each filter finds with a look at every row. A filter
// that lets a neighbour's rows pass would show a user what others have used.
func TestW17ExactFilters(t *testing.T) {
	feed := testFeed(1, 60)
	onEngines(t, func(t *testing.T, options func() Options) {
		s := openStore(t, options())
		ingestAll(t, s, 1, feed, 500)
		compute(t, s, workloadEnd)
		r, reader := s.Reporter(t.Context()), s.Reader(t.Context())
		const everything = accounting.ByOwner | accounting.ByGroup | accounting.ByProject | accounting.ByQueue |
			accounting.ByBand
		all, err := r.UsageLines(accounting.UsageQuery{By: everything})
		must(t, err)
		rows := selectedAttempts(t, reader, accounting.Filter{})
		for _, f := range filtersOf(all, rows) {
			want := slices.DeleteFunc(slices.Clone(all), func(l accounting.UsageLine) bool {
				return !f.MatchesJob(&accounting.JobEntry{Owner: l.Owner, Group: l.Group, Project: l.Project,
					Queue: l.Queue, Band: l.Band})
			})
			if f.Host == "" && f.Node == "" { // sums have neither
				if len(want) == 0 || len(want) == len(all) {
					t.Fatalf("%+v tells nothing: %d of %d lines", f, len(want), len(all))
				}
				got, err := r.UsageLines(accounting.UsageQuery{By: everything, Filter: f})
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("usage of %+v: %v\ngot  %+v\nwant %+v", f, err, got, want)
				}
				points, err := r.UsagePoints(accounting.TimeRange{}, f, false)
				var sum, wanted accounting.Amounts
				for _, p := range points {
					sum.Add(&p.Amounts)
				}
				for _, l := range want {
					wanted.Add(&l.Amounts)
				}
				if err != nil || sum != wanted {
					t.Errorf("points of %+v: %v\ngot  %+v\nwant %+v", f, err, sum, wanted)
				}
			}
			selected := slices.DeleteFunc(slices.Clone(rows), func(a accounting.AttemptRecord) bool {
				return !f.MatchesAttempt(&a)
			})
			if got := selectedAttempts(t, reader, f); len(got) != len(selected) || len(got) == 0 {
				t.Errorf("%+v: %d attempts, want %d", f, len(got), len(selected))
			}
		}
		ends, err := r.EndLines(accounting.TimeRange{}, "", true)
		must(t, err)
		for _, owner := range []string{"ann", "bob", "eve"} {
			want := slices.DeleteFunc(slices.Clone(ends), func(l accounting.EndLine) bool { return l.Owner != owner })
			got, err := r.EndLines(accounting.TimeRange{}, owner, true)
			if err != nil || len(want) == 0 || !slices.Equal(got, want) {
				t.Errorf("ends of %s: %v\ngot  %+v\nwant %+v", owner, err, got, want)
			}
		}
	})
}

// filtersOf returns a filter for each name that occurs.
func filtersOf(lines []accounting.UsageLine, rows []accounting.AttemptRecord) (all []accounting.Filter) {
	add := func(f accounting.Filter) {
		if f != (accounting.Filter{}) && !slices.Contains(all, f) {
			all = append(all, f)
		}
	}
	for _, l := range lines {
		add(accounting.Filter{Owner: l.Owner})
		add(accounting.Filter{Group: l.Group})
		add(accounting.Filter{Project: l.Project})
		add(accounting.Filter{Queue: l.Queue})
		add(accounting.Filter{Bands: accounting.Bands(l.Band)})
		add(accounting.Filter{Owner: l.Owner, Queue: l.Queue})
	}
	for i := range rows {
		add(accounting.Filter{Node: rows[i].Node})
	}
	return all
}

func selectedAttempts(t *testing.T, r accounting.Reader, f accounting.Filter) (all []accounting.AttemptRecord) {
	t.Helper()
	for a, err := range r.Attempts(accounting.Selection{Filter: f, Limit: 10_000}) {
		must(t, err)
		all = append(all, a)
	}
	return all
}
