package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/roost-batch/roost/bench/gauge"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/sacct"
	"github.com/roost-batch/roost/internal/accounting/store"
)

// What is expected of a store of 10,000,000 attempts in SQLite, and of 100,000,000 in
// PostgreSQL.
const (
	sqliteIngestAim   = 8_000.0 // attempts a second
	postgresIngestAim = 20_000.0
	oneJobAim         = 5 * time.Millisecond
	userPageAim       = 20 * time.Millisecond
	monthAim          = 100 * time.Millisecond
	dayAim            = 300 * time.Millisecond
	exportAim         = 50_000.0 // attempts a second
)

const (
	accountsBatch = 4000
	queryRounds   = 31
)

// accountsBencher measures a store of accounts.
type accountsBencher struct {
	*poolBencher
	store  *store.Store
	months accounting.TimeRange
	feed   *accountsFeed
}

// measureAccounts fills a store with generated attempts of three months, and measures
// queries.
func measureAccounts(b *poolBencher) error {
	o := store.Options{Directory: filepath.Join(b.dir, "accounts"), Postgres: b.database}
	s, err := store.Open(b.ctx, o)
	if err != nil {
		return err
	}
	defer s.Close()
	first := accounting.NewMonth(2026, time.August)
	months := accounting.TimeRange{From: first.Range().From, To: (first + 2).Range().To}
	m := accountsBencher{b, s, months, newAccountsFeed(b.accounts, months)}
	if err := m.measureFill(); err != nil {
		return err
	}
	if o.Postgres == "" {
		if err := m.addSize(o.Directory); err != nil {
			return err
		}
	}
	return m.measureQueries()
}

// measureFill stores all attempts, sums them up and charges them.
func (m accountsBencher) measureFill() error {
	rate := accounting.Rate{Rule: accounting.RateSum, CoreHour: 1_000_000, GiBHour: 100_000, By: "root",
		BandPermille: [4]int64{500, 1000, 2000, 2000}}
	if err := m.store.AddRate(m.ctx, rate); err != nil {
		return err
	}
	var spent time.Duration
	for m.feed.made < m.accounts {
		entries := m.feed.next(accountsBatch)
		begin := time.Now()
		if err := m.store.Ingest(m.ctx, m.feed.source, accountHost, entries); err != nil {
			return err
		}
		spent += time.Since(begin)
	}
	aim := sqliteIngestAim
	if m.database != "" {
		aim = postgresIngestAim
	}
	speed := float64(m.feed.made) / spent.Seconds()
	m.addAimedRow(fmt.Sprintf("accounts: %d attempts stored", m.feed.made), speed >= aim,
		leastPrefix+fmt.Sprintf("%.0f/s", aim), "%.0f/s", speed)
	begin := time.Now()
	if err := m.rollAndCharge(m.months.To + accounting.DayMillis); err != nil {
		return err
	}
	m.addRow("accounts: summed up and charged", "%.0f attempts/s",
		float64(m.feed.made)/time.Since(begin).Seconds())
	return nil
}

func (m accountsBencher) rollAndCharge(now accounting.Millis) error {
	for _, step := range []func(context.Context, accounting.Millis, int) (int, error){m.store.Roll, m.store.Charge} {
		for n, most := 1, 5000; n > 0; {
			var err error
			if n, err = step(m.ctx, now, most); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m accountsBencher) addSize(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var bytes int64
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return err
		}
		bytes += info.Size()
	}
	m.addRow("accounts: size of the files", "%d MiB, %d bytes/attempt", bytes>>20, bytes/int64(m.feed.made))
	return nil
}

// median runs a query some times, and returns the median of the times.
func (m accountsBencher) median(rounds int, query func(round int) error) (time.Duration, error) {
	var samples gauge.DurationSamples
	for round := range rounds {
		begin := time.Now()
		if err := query(round); err != nil {
			return 0, err
		}
		samples = append(samples, time.Since(begin))
	}
	return samples.Percentile(50), nil
}

// measureQueries measures what pages and commands ask for.
func (m accountsBencher) measureQueries() error {
	reader, reporter := m.store.Reader(m.ctx), m.store.Reporter(m.ctx)
	month := accounting.MonthOf(m.months.From) + 1
	day := accounting.TimeRange{From: month.Range().From, To: month.Range().From + accounting.DayMillis}
	report := func(q accounting.UsageQuery) func(int) error {
		return func(int) error {
			lines, err := reporter.UsageLines(q)
			if err == nil && len(lines) == 0 {
				err = fmt.Errorf("the report from %s on is empty", q.Range.From.Time())
			}
			return err
		}
	}
	for _, q := range []struct {
		name  string
		aim   time.Duration
		query func(round int) error
	}{
		{"one job", oneJobAim, func(round int) error {
			_, err := reader.Job(accountHost, 1+uint64(round*7919)%m.feed.seq)
			return err
		}},
		{"50 attempts of a user", userPageAim, func(round int) error {
			_, err := countAttempts(reader, accounting.Selection{Descending: true, Limit: 50,
				Filter: accounting.Filter{Owner: accountUser(round)}}, nil)
			return err
		}},
		{"a month by user", monthAim, report(accounting.UsageQuery{Range: month.Range(), By: accounting.ByOwner})},
		{"a month by group and user", monthAim,
			report(accounting.UsageQuery{Range: month.Range(), By: accounting.ByGroup | accounting.ByOwner})},
		{"a day's ended attempts by user", dayAim,
			report(accounting.UsageQuery{Range: day, By: accounting.ByOwner, WholeAtEnd: true})},
	} {
		took, err := m.median(queryRounds, q.query)
		if err != nil {
			return fmt.Errorf("%s: %w", q.name, err)
		}
		m.addAimedRow("accounts: "+q.name, took <= q.aim, q.aim.String(), "%v", took)
	}
	return m.measureDay(reader)
}

// measureDay reads all attempts that ended on a day, and exports them.
func (m accountsBencher) measureDay(reader accounting.Reader) error {
	from := m.months.From + 40*accounting.DayMillis
	day := accounting.Selection{Range: accounting.TimeRange{From: from, To: from + accounting.DayMillis}}
	n := 0
	took, err := m.median(3, func(int) (err error) {
		n, err = countAttempts(reader, day, nil)
		return err
	})
	if err != nil {
		return err
	}
	m.addRow("accounts: attempts of a day read", "%.0f/s", float64(n)/took.Seconds())
	took, err = m.median(3, func(int) error {
		printer, err := sacct.NewXDMoD(io.Discard, "pool")
		if err == nil {
			_, err = countAttempts(reader, day, printer.Print)
		}
		return err
	})
	if err != nil {
		return err
	}
	speed := float64(n) / took.Seconds()
	m.addAimedRow("accounts: export of a day for XDMoD", speed >= exportAim,
		leastPrefix+fmt.Sprintf("%.0f/s", exportAim), "%.0f/s", speed)
	return nil
}

// countAttempts reads a selection, and calls each for every attempt.
func countAttempts(reader accounting.Reader, s accounting.Selection,
	each func(*accounting.AttemptRecord) error) (n int, err error) {
	for r, err := range reader.Attempts(s) {
		if err == nil && each != nil {
			err = each(&r)
		}
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
