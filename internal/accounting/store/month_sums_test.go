package store

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/accounting"
)

// TestMonthRanges holds that the parts of a range cover it once, in order, with months
// only where they have sums.
func TestMonthRanges(t *testing.T) {
	october := accounting.NewMonth(2026, 10)
	months := []accounting.Month{october, october + 1, october + 3}
	hour := accounting.HourMillis
	for _, c := range []struct {
		name string
		r    accounting.TimeRange
		want []int
	}{
		{"a month", october.Range(), []int{monthStep}},
		{"two months", accounting.TimeRange{From: october.Start(), To: (october + 1).End()}, []int{monthStep}},
		{"a month without sums", (october + 2).Range(), []int{dayStep}},
		{"four months", accounting.TimeRange{From: october.Start(), To: (october + 3).End()},
			[]int{monthStep, dayStep, monthStep}},
		{"a month and hours", accounting.TimeRange{From: october.Start() - 25*hour, To: october.End() + hour},
			[]int{dayStep, monthStep, hourStep, hourStep}},
		{"most of a month", accounting.TimeRange{From: october.Start() + hour, To: october.End()},
			[]int{dayStep, hourStep}},
		{"all", accounting.TimeRange{}, []int{dayStep, monthStep, dayStep, monthStep, dayStep, hourStep}},
	} {
		parts := monthRanges(stepRanges(c.r), months)
		var steps []int
		for _, p := range parts {
			steps = append(steps, p.step)
		}
		if !slices.Equal(steps, c.want) {
			t.Errorf("%s: got steps %v, want %v", c.name, steps, c.want)
		}
		slices.SortFunc(parts, func(a, b stepRange) int { return int(a.from/hour - b.from/hour) })
		for i := 1; i < len(parts); i++ {
			if parts[i].from != parts[i-1].to {
				t.Errorf("%s: %v does not follow %v", c.name, parts[i], parts[i-1])
			}
		}
	}
}

// TestLevelsOfSums holds the sums of months against those of days and hours, and against
// the entries. Feeds come in random pieces, again and late, jobs move to other projects,
// roll-ups come between, and a month is closed.
func TestLevelsOfSums(t *testing.T) {
	t.Parallel()
	const jobs = 20
	onEngines(t, func(t *testing.T, options func() Options) {
		for seed := range uint64(2) {
			random := rand.New(rand.NewPCG(seed, 1))
			o := options()
			s := openStore(t, o)
			must(t, s.AddRate(t.Context(), testRate()))
			must(t, s.IngestMachines(t.Context(), testMachines()))
			feeds := [][]accounting.FeedEntry{testFeed(1, jobs), testFeed(2, jobs)}
			now := workloadStart
			for done := [2]int{}; done[0] < len(feeds[0]) || done[1] < len(feeds[1]); {
				i := random.IntN(2)
				begin := max(0, done[i]-random.IntN(60))
				end := min(len(feeds[i]), done[i]+1+random.IntN(60))
				done[i] = max(done[i], end)
				must(t, s.Ingest(t.Context(), testSource(byte(i+1)), testHost(byte(i+1)), feeds[i][begin:end]))
				if random.IntN(3) > 0 {
					continue
				}
				now = min(workloadEnd, now+accounting.Millis(random.Int64N(int64(accounting.DayMillis))))
				_, err := s.Roll(t.Context(), now, 1+random.IntN(40))
				must(t, err)
				must(t, s.checkSums(t.Context()))
			}
			for i := range feeds {
				for k := range feeds[i] {
					if j := feeds[i][k].Job; j != nil && random.IntN(4) == 0 {
						j.Project, j.Group = "moved", "bio"
						number := uint64(len(feeds[i]) + k + 1)
						must(t, s.Ingest(t.Context(), testSource(byte(i+1)), testHost(byte(i+1)),
							[]accounting.FeedEntry{{Number: number, Job: j}}))
					}
				}
			}
			compute(t, s, workloadEnd)
			must(t, s.CloseMonth(t.Context(), accounting.MonthOf(workloadStart), "root", workloadEnd))
			must(t, s.Check(t.Context()))
			holdMonthReports(t, s)
		}
	})
}

// holdMonthReports compares reports of whole months with sums of reports of their days.
// These do not read sums of months.
func holdMonthReports(t *testing.T, s *Store) {
	t.Helper()
	r := s.Reporter(t.Context())
	months := s.summed.all()
	if len(months) != 2 {
		t.Fatalf("months %v have sums, want 2", months)
	}
	for _, m := range months {
		for _, whole := range []bool{false, true} {
			q := accounting.UsageQuery{Range: m.Range(), WholeAtEnd: whole,
				By: accounting.ByOwner | accounting.ByGroup | accounting.ByProject | accounting.ByBand}
			lines, err := r.UsageLines(q)
			must(t, err)
			sums := map[accounting.UsageLine]accounting.Amounts{}
			for day := m.Start(); day < m.End(); day += accounting.DayMillis {
				q.Range = accounting.TimeRange{From: day, To: day + accounting.DayMillis}
				parts, err := r.UsageLines(q)
				must(t, err)
				for _, p := range parts {
					amounts := p.Amounts
					p.Amounts = accounting.Amounts{}
					sum := sums[p]
					sum.Add(&amounts)
					sums[p] = sum
				}
			}
			if len(lines) != len(sums) || len(lines) == 0 {
				t.Fatalf("%s, whole %v: %d lines, and %d of days", m, whole, len(lines), len(sums))
			}
			for _, l := range lines {
				amounts := l.Amounts
				l.Amounts = accounting.Amounts{}
				if sums[l] != amounts {
					t.Errorf("%s, whole %v: got %+v, want %+v", m, whole, amounts, sums[l])
				}
			}
		}
	}
}

// TestWrongSums holds that Check finds sums that are not those of what they sum up.
func TestWrongSums(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, options func() Options) {
		for change, want := range map[string]string{
			`UPDATE rollup SET wall = wall + 1 WHERE step = 3`:              "sums of month 2026-10",
			`UPDATE rollup SET days = days + 1 WHERE step = 3`:              "sums of month 2026-10",
			`DELETE FROM rollup WHERE step = 3 AND whole = 1`:               "sums of month 2026-10",
			`UPDATE rollup SET lost_cpu = lost_cpu + 1 WHERE step = 1`:      "sums of days",
			`DELETE FROM rollup WHERE step = 2 AND whole = 1 AND band <> 2`: "sums of days",
		} {
			s := openStore(t, options())
			ingestAll(t, s, 1, testFeed(1, 10), 100)
			compute(t, s, workloadEnd)
			must(t, s.Check(t.Context()))
			_, err := s.engine.writer().ExecContext(t.Context(), change)
			must(t, err)
			if err := s.Check(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v", change, err)
			}
			must(t, s.Close())
		}
	})
}

// TestUpgradeSumsMonths opens a store that has sums of days alone, as the second schema
// left them. Reports are right before the months have sums, and after.
func TestUpgradeSumsMonths(t *testing.T) {
	onEngines(t, func(t *testing.T, options func() Options) {
		o := options()
		s := openStore(t, o)
		ingestAll(t, s, 1, testFeed(1, 30), 100)
		compute(t, s, workloadEnd)
		want := digest(t, s)
		for _, text := range []string{`DELETE FROM rollup WHERE step = 3`, `DELETE FROM summed_month`} {
			_, err := s.engine.writer().ExecContext(t.Context(), text)
			must(t, err)
		}
		must(t, s.Close())
		s = openStore(t, o)
		report := func() []accounting.UsageLine {
			lines, err := s.Reporter(t.Context()).UsageLines(accounting.UsageQuery{
				Range: accounting.MonthOf(workloadStart).Range(), By: accounting.ByOwner})
			must(t, err)
			return lines
		}
		before := report()
		if len(s.summed.all()) != 0 || len(before) == 0 {
			t.Fatalf("months %v have sums, and there are %d lines", s.summed.all(), len(before))
		}
		compute(t, s, workloadEnd)
		if after := report(); len(s.summed.all()) != 2 || !slices.Equal(before, after) {
			t.Errorf("months %v have sums; got %v, want %v", s.summed.all(), after, before)
		}
		equalDigests(t, digest(t, s), want)
		must(t, s.Check(t.Context()))
	})
}
