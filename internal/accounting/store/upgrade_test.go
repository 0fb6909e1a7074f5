package store

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/accounting"
)

// frozen returns a file of the first schema, as the first release had it.
func frozen(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "schema-1", name))
	must(t, err)
	return string(text)
}

// TestReleasedSteps holds that the first step of each schema is what it was. Stores have
// it already, so a change of it would reach new stores alone.
func TestReleasedSteps(t *testing.T) {
	for _, name := range []string{"main", "month", "postgres"} {
		text, err := schemaFiles.ReadFile("schema/" + name + "/001.sql")
		must(t, err)
		if string(text) != frozen(t, name+".sql") {
			t.Errorf("schema/%s/001.sql has changed: put what is new into another step", name)
		}
	}
}

// writeFirstSchema makes a store as the first release left it, with the rows of rows.sql.
func writeFirstSchema(t *testing.T, o Options) {
	t.Helper()
	rate, err := json.Marshal(testRate())
	must(t, err)
	rows := frozen(t, "rows.sql") + "UPDATE rate SET document = '" + string(rate) + "';"
	execute := func(db *sql.DB, text string) {
		t.Helper()
		defer db.Close()
		_, err := db.ExecContext(t.Context(), text)
		must(t, err)
	}
	if o.Postgres != "" {
		server, err := testServer()
		must(t, err)
		_, name, _ := strings.Cut(o.Postgres, "dbname=")
		version := "INSERT INTO schema_version VALUES (1)"
		for _, text := range []string{postgresPrepare, version, frozen(t, "postgres.sql"), rows} {
			execute(server.open(name), text)
		}
		return
	}
	for file, text := range map[string]string{
		"main.db": frozen(t, "main.sql") + rows, "month-2026-10.db": frozen(t, "month.sql"),
	} {
		db, err := openSQLite(filepath.Join(o.Directory, file), "")
		must(t, err)
		execute(db, text)
	}
}

// TestUpgrade opens a store of the first release and goes on with it. What it had is
// there and has digests, and new entries give the digest of a new store.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	want := cleanDigest(t, Options{Directory: t.TempDir()}, 50)
	onEngines(t, func(t *testing.T, options func() Options) {
		o := options()
		writeFirstSchema(t, o)
		s := openStore(t, o)
		var version, digests int
		schema := mainSchema()
		if o.Postgres != "" {
			schema = postgresSchema()
		}
		must(t, s.engine.reader().QueryRowContext(t.Context(), schema.version).Scan(&version))
		must(t, s.engine.reader().QueryRowContext(t.Context(), `SELECT count(*) FROM row_digest`).Scan(&digests))
		if steps, err := schema.steps(); err != nil || version < 2 || version != len(steps) || digests != 3 {
			t.Errorf("version %d with %d digests, %v", version, digests, err)
		}
		must(t, s.IngestMachines(t.Context(), testMachines()))
		for source := byte(1); source <= 2; source++ {
			ingestAll(t, s, source, testFeed(source, 50), 100)
		}
		compute(t, s, workloadEnd)
		must(t, s.Check(t.Context()))
		equalDigests(t, digest(t, s), want)
	})
}

// leaveSecondSchema turns a store that is closed into what the second schema had.
func leaveSecondSchema(t *testing.T, o Options) {
	t.Helper()
	texts := []string{`DELETE FROM rollup WHERE step = 3`, `ALTER TABLE rollup DROP COLUMN days`,
		`DROP TABLE summed_month`, `DROP TABLE ledger_sample`, `DROP TABLE ledger_use`, `DROP TABLE ledger_comparison`,
		`DROP TABLE machine_class`}
	var db *sql.DB
	if o.Postgres != "" {
		server, err := testServer()
		must(t, err)
		_, name, _ := strings.Cut(o.Postgres, "dbname=")
		db, texts = server.open(name), append(texts, `DELETE FROM schema_version WHERE version > 2`)
	} else {
		var err error
		db, err = openSQLite(filepath.Join(o.Directory, "main.db"), "")
		must(t, err)
		texts = append(texts, `PRAGMA user_version = 2`)
	}
	defer db.Close()
	for _, text := range texts {
		_, err := db.ExecContext(t.Context(), text)
		must(t, err)
	}
}

// TestUpgradeWhileFeedsWait upgrades a store between two halves of feeds. These come on
// while the new release sums up what the old one left, and repeat what it had stored.
// Nothing is lost or counted twice.
func TestUpgradeWhileFeedsWait(t *testing.T) {
	jobs := testJobs(40)
	want := cleanDigest(t, Options{Directory: t.TempDir()}, jobs)
	onEngines(t, func(t *testing.T, options func() Options) {
		o := options()
		s := openStore(t, o)
		must(t, s.AddRate(t.Context(), testRate()))
		must(t, s.IngestMachines(t.Context(), testMachines()))
		feeds := [][]accounting.FeedEntry{testFeed(1, jobs), testFeed(2, jobs)}
		size := max(50, len(feeds[0])/200)
		for i, feed := range feeds {
			ingestAll(t, s, byte(i+1), feed[:len(feed)/2], size)
		}
		compute(t, s, workloadEnd-accounting.DayMillis)
		must(t, s.Close())
		leaveSecondSchema(t, o)

		began := time.Now()
		s = openStore(t, o)
		waited := make(chan time.Duration, len(feeds))
		var group sync.WaitGroup
		for i, feed := range feeds {
			group.Go(func() {
				source := byte(i + 1)
				from := max(0, int(s.NextNumber(testSource(source)))-1-3*size) // the last answers were lost
				for part := range slices.Chunk(feed[from:], size) {
					if err := s.Ingest(t.Context(), testSource(source), testHost(source), part); err != nil {
						t.Error(err)
						return
					}
					select {
					case waited <- time.Since(began):
					default:
					}
				}
			})
		}
		for range 5 {
			_, err := s.Roll(t.Context(), workloadEnd-accounting.DayMillis/2, 20)
			must(t, err)
		}
		t.Logf("the first entries were stored after %v", <-waited)
		group.Wait()
		compute(t, s, workloadEnd)
		equalDigests(t, digest(t, s), want)
		must(t, s.Check(t.Context()))
	})
}

// TestChangedRows changes rows that no schedd has. Each is found by its table and number.
func TestChangedRows(t *testing.T) {
	onEngines(t, func(t *testing.T, options func() Options) {
		for _, c := range []struct{ change, want string }{
			{`UPDATE rate SET document = replace(document, '1000000', '9000000')`, "table rate"},
			{`UPDATE budget SET amount = amount + 1`, "table budget"},
			{`UPDATE adjustment SET amount = -amount`, "table adjustment"},
			{`DELETE FROM adjustment`, "row 1 is gone"},
		} {
			o := options()
			writeFirstSchema(t, o)
			s := openStore(t, o)
			must(t, s.Verify(t.Context()))
			_, err := s.engine.writer().ExecContext(t.Context(), c.change)
			must(t, err)
			must(t, s.Close())
			s = openStore(t, o) // does not make the digest anew
			if err := s.Verify(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v", c.change, err)
			}
			must(t, s.Close())
		}
	})
}

// TestFlippedBit flips one bit of a rate in the file. SQLite would serve it.
func TestFlippedBit(t *testing.T) {
	o := Options{Directory: t.TempDir()}
	s := openStore(t, o)
	must(t, s.AddRate(t.Context(), testRate()))
	must(t, s.Close())
	path := filepath.Join(o.Directory, "main.db")
	data, err := os.ReadFile(path)
	must(t, err)
	at := bytes.Index(data, []byte(`1000000`))
	if at < 0 {
		t.Fatal("the rate is not in the file")
	}
	data[at] ^= 8
	must(t, os.WriteFile(path, data, 0o600))
	s = openStore(t, o)
	if rates, err := s.Rates(t.Context()); err != nil || len(rates) != 1 || rates[0].CoreHour == testRate().CoreHour {
		t.Errorf("got %v, %v: no bit of the amount was flipped", rates, err)
	}
	if err := s.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "table rate") {
		t.Errorf("got %v", err)
	}
}
