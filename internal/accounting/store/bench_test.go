package store

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// benchAttempts is how many attempts the benchmarks of queries store first.
var benchAttempts = flag.Int("store.attempts", 50_000,
	"attempts in the store that queries are measured on (10000000 for the goal)")

// The workload of benchmarks: users in groups, whose attempts fill one month.
const (
	benchUsers  = 400
	benchGroups = 40
	benchBatch  = 4000
)

// benchFeed makes entries of ended attempts, each the only one of its job or one of an
// array of ten.
type benchFeed struct {
	random *rand.Rand
	number uint64
	seq    uint64
	index  int
	job    accounting.JobEntry
}

func newBenchFeed() *benchFeed { return &benchFeed{random: rand.New(rand.NewPCG(1, 1))} }

// next returns a batch with n attempts, and the jobs that they need.
func (f *benchFeed) next(n int) []accounting.FeedEntry {
	var batch []accounting.FeedEntry
	add := func(e accounting.FeedEntry) {
		f.number++
		e.Number = f.number
		batch = append(batch, e)
	}
	month := accounting.NewMonth(2026, time.October).Range()
	for range n {
		if f.index == f.job.Tasks {
			f.newJob(month)
			add(accounting.FeedEntry{Job: clone(f.job)})
		}
		wall := f.random.Int64N(2 * int64(accounting.HourMillis))
		start := f.job.Submitted + accounting.Millis(f.random.Int64N(600_000))
		add(accounting.FeedEntry{Attempt: &accounting.AttemptEntry{
			AttemptKey: accounting.AttemptKey{JobKey: f.job.JobKey, Index: f.index, Attempt: 1},
			Node:       fmt.Sprintf("node%d", f.random.IntN(1000)), AppClass: "batch", Assigned: start - 1000,
			Started: start,
			Ended:   start + accounting.Millis(wall), Held: f.job.Request, Wall: wall, UserCPU: wall,
			SystemCPU: wall / 50,
			Useful:    wall, Peak: roost.Resources{Memory: roost.GiB}, Read: 1 << 30, Written: 1 << 20,
			Cause: accounting.EndedExit,
		}})
		f.index++
	}
	return batch
}

func (f *benchFeed) newJob(month accounting.TimeRange) {
	f.seq++
	f.index = 0
	user := f.random.IntN(benchUsers)
	at := month.From + accounting.Millis(f.random.Int64N(int64(month.To-month.From)))
	f.job = accounting.JobEntry{
		JobKey: accounting.JobKey{Month: accounting.MonthOf(at), Source: testSource(1), Seq: f.seq}, Host: testHost(1),
		Name: "simulation", Owner: fmt.Sprintf("user%d", user), Group: fmt.Sprintf("field%d.group%d", user%5,
			user%benchGroups),
		Band: roost.BatchBand, Queue: "long", Tasks: 1 + 9*(f.random.IntN(2)), Arguments: "simulate",
		WorkDir:   "/home/user/work",
		Request:   roost.Resources{CPU: 1000 * roost.MilliCPU(1+f.random.IntN(8)), Memory: 4 * roost.GiB},
		Submitted: at, Eligible: at,
	}
}

// benchOnEngines runs a benchmark with SQLite and with a server that syncs its log.
// serverTime returns the CPU time of the server.
func benchOnEngines(b *testing.B, run func(b *testing.B, o Options, serverTime func() time.Duration)) {
	b.Run("sqlite", func(b *testing.B) {
		run(b, Options{Directory: b.TempDir()}, func() time.Duration { return 0 })
	})
	b.Run("postgres", func(b *testing.B) {
		s, err := startPostgres(benchmarkSetup)
		if err != nil {
			b.Skipf("SKIPPED: PostgreSQL: %v", err)
		}
		defer s.stop()
		run(b, Options{Postgres: s.database(b)}, func() time.Duration { return s.cpuTime(b) })
	})
}

// ownTime returns the CPU time of this process.
func ownTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkIngest stores batches of attempts that have ended, as after an outage of the
// accountant. A batch has what one message of a schedd has, or what is gathered of
// several. On a machine with other load the CPU time is the figure to compare.
func BenchmarkIngest(b *testing.B) {
	for _, size := range []int{1000, 4000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			benchOnEngines(b, func(b *testing.B, o Options, serverTime func() time.Duration) {
				s, err := Open(b.Context(), o)
				must(b, err)
				defer s.Close()
				feed := newBenchFeed()
				var spent, cpu time.Duration
				attempts := 0
				for b.Loop() {
					b.StopTimer()
					batch := feed.next(size)
					b.StartTimer()
					begin, used := time.Now(), ownTime(b)+serverTime()
					must(b, s.Ingest(b.Context(), testSource(1), testHost(1), batch))
					spent += time.Since(begin)
					cpu += ownTime(b) + serverTime() - used
					attempts += size
				}
				b.ReportMetric(float64(attempts)/spent.Seconds(), "attempts/s")
				b.ReportMetric(float64(cpu.Microseconds())/float64(attempts), "cpu-µs/attempt")
			})
		})
	}
}

// BenchmarkQueries measures queries on a month of attempts.
func BenchmarkQueries(b *testing.B) {
	benchOnEngines(b, func(b *testing.B, o Options, serverTime func() time.Duration) {
		s, err := Open(b.Context(), o)
		must(b, err)
		defer s.Close()
		must(b, s.AddRate(b.Context(), testRate()))
		feed := newBenchFeed()
		for n := 0; n < *benchAttempts; n += benchBatch {
			must(b, s.Ingest(b.Context(), testSource(1), testHost(1), feed.next(benchBatch)))
		}
		month := accounting.NewMonth(2026, time.October)
		begin, used := time.Now(), ownTime(b)+serverTime()
		compute(b, s, month.End()+accounting.DayMillis)
		b.Logf("roll-ups and charges of %d attempts: %v, CPU %v", *benchAttempts,
			time.Since(begin).Round(time.Millisecond), (ownTime(b) + serverTime() - used).Round(time.Millisecond))
		reporter, reader := s.Reporter(b.Context()), s.Reader(b.Context())
		b.Run("month by user", func(b *testing.B) {
			for b.Loop() {
				lines, err := reporter.UsageLines(accounting.UsageQuery{Range: month.Range(), By: accounting.ByOwner})
				must(b, err)
				if len(lines) != benchUsers {
					b.Fatalf("got %d lines", len(lines))
				}
			}
		})
		b.Run("50 attempts of a user", func(b *testing.B) {
			for b.Loop() {
				selection := accounting.Selection{Filter: accounting.Filter{Owner: "user7"}, Descending: true,
					Limit: 50}
				if got := len(collect(b, reader.Attempts(selection))); got != 50 {
					b.Fatalf("got %d attempts", got)
				}
			}
		})
		b.Run("one job", func(b *testing.B) {
			for b.Loop() {
				_, err := reader.Job(testHost(1), 77)
				must(b, err)
			}
		})
		b.Run("all attempts", func(b *testing.B) {
			n, used := 0, ownTime(b)+serverTime()
			for b.Loop() {
				for _, err := range reader.Attempts(accounting.Selection{}) {
					must(b, err)
					n++
				}
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "attempts/s")
			b.ReportMetric(float64((ownTime(b)+serverTime()-used).Microseconds())/float64(n), "cpu-µs/attempt")
		})
	})
}
