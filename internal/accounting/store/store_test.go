package store

import (
	"errors"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// onEngines runs a test with SQLite and with PostgreSQL. options returns a new, empty
// store's each time.
func onEngines(t *testing.T, test func(t *testing.T, options func() Options)) {
	t.Run("sqlite", func(t *testing.T) {
		test(t, func() Options { return Options{Directory: t.TempDir()} })
	})
	t.Run("postgres", func(t *testing.T) {
		test(t, func() Options { return Options{Postgres: postgresAddress(t)} })
	})
}

func openStore(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// collect returns what an iterator returns.
func collect[T any](t testing.TB, records iter.Seq2[T, error]) []T {
	t.Helper()
	var all []T
	for r, err := range records {
		must(t, err)
		all = append(all, r)
	}
	return all
}

// ingestAll stores a feed in batches.
func ingestAll(t testing.TB, s *Store, source byte, feed []accounting.FeedEntry, size int) {
	t.Helper()
	for part := range slices.Chunk(feed, size) {
		must(t, s.Ingest(t.Context(), testSource(source), testHost(source), part))
	}
}

// testRate is the rate of the workload.
func testRate() accounting.Rate {
	return accounting.Rate{
		Rule: accounting.RateSum, CoreHour: 1_000_000, GiBHour: 100_000, BandPermille: [4]int64{500, 1000, 2000, 2000},
		MonthlyGrant: 1000, By: "root",
	}
}

// compute computes all roll-ups and charges.
func compute(t testing.TB, s *Store, now accounting.Millis) {
	t.Helper()
	for n := 100; n == 100; {
		var err error
		n, err = s.Roll(t.Context(), now, 100)
		must(t, err)
	}
	for n := 500; n == 500; {
		var err error
		n, err = s.Charge(t.Context(), now, 500)
		must(t, err)
	}
}

func digest(t testing.TB, s *Store) []string {
	t.Helper()
	lines, err := s.Digest(t.Context())
	must(t, err)
	return lines
}

// cleanDigest returns the digest of two feeds that came once and in order.
func cleanDigest(t testing.TB, o Options, jobs int) []string {
	t.Helper()
	s := openStore(t, o)
	must(t, s.AddRate(t.Context(), testRate()))
	must(t, s.IngestMachines(t.Context(), testMachines()))
	for source := byte(1); source <= 2; source++ {
		ingestAll(t, s, source, testFeed(source, jobs), 1000)
	}
	compute(t, s, workloadEnd)
	lines := digest(t, s)
	must(t, s.Check(t.Context()))
	must(t, s.Close())
	return lines
}

func equalDigests(t testing.TB, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("got\n%q\nwant\n%q", differentDigests(got, want), differentDigests(want, got))
	}
}

// TestDigestOfDisturbedFeeds holds that nothing but the entries leaves a trace. The order
// of sources, the size of batches, entries that come twice, roll-ups between them,
// restarts and the engine do not.
func TestDigestOfDisturbedFeeds(t *testing.T) {
	t.Parallel()
	const jobs = 50
	want := cleanDigest(t, Options{Directory: t.TempDir()}, jobs)
	onEngines(t, func(t *testing.T, options func() Options) {
		o := options()
		s := openStore(t, o)
		must(t, s.AddRate(t.Context(), testRate()))
		for source := byte(2); source >= 1; source-- {
			feed := testFeed(source, jobs)
			for begin := 0; begin < len(feed); begin += 37 {
				end := min(begin+90, len(feed)) // more than half comes twice, or three times
				must(t, s.Ingest(t.Context(), testSource(source), testHost(source), feed[begin:end]))
				if begin%10 == 0 {
					compute(t, s, workloadStart+accounting.Millis(begin)*accounting.HourMillis/20)
				}
			}
			ingestAll(t, s, source, feed, 1000)
			if got := s.NextNumber(testSource(source)); got != uint64(len(feed)+1) {
				t.Fatalf("the next number is %d, want %d", got, len(feed)+1)
			}
			must(t, s.Close())
			s = openStore(t, o)
		}
		machines := testMachines()
		slices.Reverse(machines)
		must(t, s.IngestMachines(t.Context(), machines))
		must(t, s.IngestMachines(t.Context(), machines[:3]))
		compute(t, s, workloadEnd)
		equalDigests(t, digest(t, s), want)
		must(t, s.Check(t.Context()))
	})
}

// TestRestoreFromHistories holds that what was lost of a feed comes back from the final
// records that histories have.
func TestRestoreFromHistories(t *testing.T) {
	t.Parallel()
	const jobs = 40
	want := cleanDigest(t, Options{Directory: t.TempDir()}, jobs)
	onEngines(t, func(t *testing.T, options func() Options) {
		s := openStore(t, options())
		must(t, s.AddRate(t.Context(), testRate()))
		must(t, s.IngestMachines(t.Context(), testMachines()))
		ingestAll(t, s, 2, testFeed(2, jobs), 1000)
		feed := testFeed(1, jobs)
		first, next := len(feed)/3, 2*len(feed)/3
		ingestAll(t, s, 1, feed[:first], 50)
		ingestAll(t, s, 1, feed[next:], 50)
		compute(t, s, workloadEnd)
		sources, err := s.Reporter(t.Context()).Sources()
		must(t, err)
		if len(sources) != 2 || len(sources[0].Gaps) != 1 || sources[0].Gaps[0].From != uint64(first+1) ||
			sources[0].Gaps[0].To != uint64(next+1) {
			t.Fatalf("got %+v", sources)
		}
		// A history knows the jobs at their ends, and not in the order of the feed.
		history := slices.Clone(feed[:next])
		slices.SortStableFunc(history, func(a, b accounting.FeedEntry) int {
			return int(attemptRank(a)) - int(attemptRank(b))
		})
		must(t, s.Restore(t.Context(), testSource(1), testHost(1), uint64(next+1), history))
		must(t, s.CloseGap(t.Context(), testSource(1), uint64(first+1)))
		compute(t, s, workloadEnd)
		equalDigests(t, digest(t, s), want)
		if sources, err = s.Reporter(t.Context()).Sources(); err != nil || len(sources[0].Gaps) != 0 {
			t.Errorf("got %+v, %v", sources, err)
		}
	})
}

// TestRebuildFromHistories makes a store that was lost again, from the final records of
// all jobs in any order.
func TestRebuildFromHistories(t *testing.T) {
	t.Parallel()
	jobs := testJobs(40)
	want := cleanDigest(t, Options{Directory: t.TempDir()}, jobs)
	onEngines(t, func(t *testing.T, options func() Options) {
		s := openStore(t, options())
		must(t, s.AddRate(t.Context(), testRate()))
		must(t, s.IngestMachines(t.Context(), testMachines()))
		for source := byte(1); source <= 2; source++ {
			feed := testFeed(source, jobs)
			next := uint64(len(feed) + 1)
			history := finalEntries(feed)
			rand.New(rand.NewPCG(1, uint64(source))).Shuffle(len(history), func(i, j int) {
				history[i], history[j] = history[j], history[i]
			})
			for part := range slices.Chunk(history, max(100, len(history)/200)) {
				must(t, s.Restore(t.Context(), testSource(source), testHost(source), next, part))
			}
			must(t, s.SkipTo(t.Context(), testSource(source), testHost(source), next))
		}
		compute(t, s, workloadEnd)
		equalDigests(t, digest(t, s), want)
		must(t, s.Check(t.Context()))
	})
}

// finalEntries returns of each job, attempt and hour of usage the last entry, and all
// actions.
func finalEntries(feed []accounting.FeedEntry) []accounting.FeedEntry {
	last := map[any]int{}
	for i := range feed {
		last[entryKey(&feed[i], i)] = i
	}
	var all []accounting.FeedEntry
	for i := range feed {
		if last[entryKey(&feed[i], i)] == i {
			all = append(all, feed[i])
		}
	}
	return all
}

// entryKey returns what an entry is about.
func entryKey(e *accounting.FeedEntry, at int) any {
	switch {
	case e.Job != nil:
		return e.Job.JobKey
	case e.Attempt != nil:
		return e.Attempt.AttemptKey
	case e.Usage != nil:
		return usageKey{attemptKey{index: int64(e.Usage.Index), attempt: int64(e.Usage.Attempt),
			jobKey: jobKey{e.Usage.Month, int64(e.Usage.Source[0]), int64(e.Usage.Seq)}}, e.Usage.Hour}
	}
	return at
}

// attemptRank puts attempts before jobs.
func attemptRank(e accounting.FeedEntry) byte {
	return byte(boolNumber(e.Job != nil))
}

func TestRefusedEntries(t *testing.T) {
	onEngines(t, func(t *testing.T, options func() Options) {
		s := openStore(t, options())
		feed := testFeed(1, 3)
		for name, change := range map[string]func(*accounting.FeedEntry){
			"no month":      func(e *accounting.FeedEntry) { e.Job.Month = 0 },
			"other month":   func(e *accounting.FeedEntry) { e.Job.Month++ },
			"far month":     func(e *accounting.FeedEntry) { e.Job.Month = 1 << 30 },
			"other source":  func(e *accounting.FeedEntry) { e.Job.Source[0]++ },
			"great number":  func(e *accounting.FeedEntry) { e.Job.Seq = 1 << 63 },
			"nothing in it": func(e *accounting.FeedEntry) { e.Job = nil },
		} {
			e := feed[0]
			e.Job = clone(*e.Job)
			change(&e)
			if err := s.Ingest(t.Context(), testSource(1), "h", []accounting.FeedEntry{e}); !errors.Is(err,
				roost.Invalid) {
				t.Errorf("%s: got %v", name, err)
			}
		}
		twice := []accounting.FeedEntry{feed[0], feed[0]}
		if err := s.Ingest(t.Context(), testSource(1), "h", twice); !errors.Is(err, roost.Invalid) {
			t.Errorf("a number twice: got %v", err)
		}
		if got := s.NextNumber(testSource(1)); got != 1 {
			t.Errorf("the next number is %d after refusals", got)
		}
		must(t, s.Ingest(t.Context(), testSource(1), "h", feed))
	})
}

// TestOneWriter holds that a second accountant is refused.
func TestOneWriter(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, options func() Options) {
		o := options()
		s := openStore(t, o)
		if second, err := Open(t.Context(), o); !errors.Is(err, roost.Conflict) {
			second.Close()
			t.Errorf("got %v", err)
		}
		must(t, s.Close())
		openStore(t, o)
	})
}

// TestSkipAndPurge holds that a feed goes on after what was restored, and that usage and
// actions go by their times.
func TestSkipAndPurge(t *testing.T) {
	onEngines(t, func(t *testing.T, options func() Options) {
		o := options()
		s := openStore(t, o)
		feed := testFeed(1, 30)
		middle := uint64(len(feed) / 2)
		must(t, s.Restore(t.Context(), testSource(1), testHost(1), middle+1, feed[:middle]))
		must(t, s.SkipTo(t.Context(), testSource(1), testHost(1), middle+1))
		ingestAll(t, s, 1, feed[middle:], 100)
		must(t, s.SkipTo(t.Context(), testSource(1), testHost(1), 3))
		must(t, s.Close())
		s = openStore(t, o)
		if got := s.NextNumber(testSource(1)); got != uint64(len(feed)+1) {
			t.Errorf("the next number is %d, want %d", got, len(feed)+1)
		}
		sources, err := s.Reporter(t.Context()).Sources()
		must(t, err)
		if len(sources) != 1 || len(sources[0].Gaps) != 0 || sources[0].Skew == 0 {
			t.Errorf("got %+v", sources)
		}

		r, all := s.Reader(t.Context()), accounting.TimeRange{}
		usage, actions := collect(t, r.Usage(all)), collect(t, r.Actions(all))
		before := usage[len(usage)/2].Hour
		at := actions[len(actions)/2].Time
		must(t, s.Purge(t.Context(), before, at))
		usage = slices.DeleteFunc(usage, func(u accounting.UsageHour) bool { return u.Hour < before })
		actions = slices.DeleteFunc(actions, func(a accounting.JobAction) bool { return a.Time < at })
		if got := collect(t, r.Usage(all)); !slices.Equal(got, usage) {
			t.Errorf("got %d hours, want %d", len(got), len(usage))
		}
		if got := collect(t, r.Actions(all)); !slices.Equal(got, actions) {
			t.Errorf("got %d actions, want %d", len(got), len(actions))
		}
		key := usage[0].AttemptKey
		if got := collect(t, r.JobUsage(key.JobKey, key.Index, key.Index)); len(got) == 0 || !slices.ContainsFunc(got,
			func(u accounting.UsageRecord) bool { return u.UsageHour == usage[0] && u.Ended > u.Started }) {
			t.Errorf("the usage of a task: got %+v, want %+v", got, usage[0])
		}
		if got := collect(t, r.AttemptUsage(key)); len(got) != 1 || got[0] != usage[0] {
			t.Errorf("got %+v", got)
		}
		if got := collect(t, r.JobActions(actions[0].JobKey)); len(got) == 0 || got[0] != actions[0] {
			t.Errorf("got %+v", got)
		}
	})
}

// differentDigests returns the lines of a that b does not have.
func differentDigests(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(line string) bool { return slices.Contains(b, line) })
}
