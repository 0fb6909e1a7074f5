package store

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

const outageJobs = 120

// ingestThrough stores two feeds as an accountant does. After an error it goes on with
// the number that the store expects next. It reports each error.
func ingestThrough(t *testing.T, s *Store, size int, before func(round int), failed func(err error)) {
	t.Helper()
	feeds := [][]accounting.FeedEntry{testFeed(1, outageJobs), testFeed(2, outageJobs)}
	for round := 0; ; round++ {
		before(round)
		source := byte(1 + round%2)
		feed, next := feeds[source-1], int(s.NextNumber(testSource(source)))-1
		rest := feed[next:min(next+size, len(feed))]
		if err := s.Ingest(t.Context(), testSource(source), testHost(source), rest); err != nil {
			failed(err)
		}
		if round%7 == 0 {
			if _, err := s.Roll(t.Context(), workloadStart+accounting.DayMillis, 20); err != nil {
				failed(err)
			}
			if _, err := s.Charge(t.Context(), workloadStart+accounting.DayMillis, 50); err != nil {
				failed(err)
			}
		}
		if len(rest) == 0 && int(s.NextNumber(testSource(3-source))) > len(feeds[2-source]) {
			return
		}
	}
}

// TestServerGoesAway stops the server in transactions and starts it again. The same store
// goes on, and what it has in the end is that of a store without outages.
func TestServerGoesAway(t *testing.T) {
	t.Parallel()
	server, err := startPostgres(testSetup)
	if err != nil {
		t.Skipf("SKIPPED: PostgreSQL: %v", err)
	}
	defer server.stop()
	s := openStore(t, Options{Postgres: server.database(t)})
	must(t, s.AddRate(t.Context(), testRate()))
	must(t, s.IngestMachines(t.Context(), testMachines()))
	errs, outages := 0, 0
	var stopped chan struct{}
	ingestThrough(t, s, 60, func(round int) {
		if round%9 == 4 && outages < 4 {
			outages++
			stopped = make(chan struct{})
			go func() { server.shutDown(); close(stopped) }() // while the round writes
		}
	}, func(err error) {
		errs++
		if !errors.Is(err, roost.Unavailable) || !strings.Contains(err.Error(), "database test1") {
			t.Errorf("got %v", err)
		}
		if stopped != nil {
			<-stopped
			must(t, server.start())
			stopped = nil
		}
	})
	if errs < outages || outages < 4 {
		t.Errorf("%d errors in %d outages", errs, outages)
	}
	compute(t, s, workloadEnd)
	equalDigests(t, digest(t, s), cleanDigest(t, Options{Directory: t.TempDir()}, outageJobs))
}

// TestDiskFillsAndEmpties fills the file system of a store while it takes entries, and
// makes space again, several times. The same store goes on, and nothing is lost.
func TestDiskFillsAndEmpties(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("roost-test", dir, "tmpfs", 0, "size=96m"); err != nil {
		t.Skipf("SKIPPED: a small file system cannot be mounted: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	s := openStore(t, Options{Directory: filepath.Join(dir, "accounts")})
	must(t, s.AddRate(t.Context(), testRate()))
	must(t, s.IngestMachines(t.Context(), testMachines()))
	filler, errs := filepath.Join(dir, "filler"), 0
	ingestThrough(t, s, 60, func(round int) {
		if round%9 == 4 {
			fill(t, filler, round*3000) // leaves another amount of space each time
		}
	}, func(err error) {
		errs++
		if !errors.Is(err, roost.Exhausted) || !strings.Contains(err.Error(), "make space on its file system") {
			t.Errorf("got %v", err)
		}
		if err := os.Remove(filler); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	})
	if errs < 3 {
		t.Errorf("only %d errors", errs)
	}
	os.Remove(filler)
	compute(t, s, workloadEnd)
	must(t, s.Check(context.Background()))
	equalDigests(t, digest(t, s), cleanDigest(t, Options{Directory: t.TempDir()}, outageJobs))
}

// fill writes a file until a file system has no space but for some bytes.
func fill(t *testing.T, path string, leave int) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	must(t, err)
	defer f.Close()
	block := make([]byte, 4096)
	size := int64(0)
	for err == nil {
		var n int
		n, err = f.Write(block)
		size += int64(n)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	must(t, f.Truncate(max(0, size-int64(leave))))
}

// brokenEngine fails commits of rows: in the last of them, or after all if answers are
// lost.
type brokenEngine struct {
	engine
	commits   int
	loseReply bool
}

type brokenSession struct {
	rowSession
	engine *brokenEngine
}

var errBroken = errors.New("the connection broke")

func (e *brokenEngine) begin(ctx context.Context) (rowSession, error) {
	s, err := e.engine.begin(ctx)
	return &brokenSession{s, e}, err
}

func (s *brokenSession) commit(ctx context.Context, first, last func(*sql.Tx) error) error {
	if s.engine.commits++; s.engine.commits%3 != 0 {
		return s.rowSession.commit(ctx, first, last)
	}
	if s.engine.loseReply {
		return errors.Join(s.rowSession.commit(ctx, first, last), errBroken)
	}
	return errors.Join(s.rowSession.commit(ctx, first, func(*sql.Tx) error { return errBroken }), errBroken)
}

// TestBrokenCommits holds that a store knows what a failed commit has done. Names that it
// added have their numbers, and entries that it stored come no more.
func TestBrokenCommits(t *testing.T) {
	t.Parallel()
	want := cleanDigest(t, Options{Directory: t.TempDir()}, outageJobs)
	onEngines(t, func(t *testing.T, options func() Options) {
		for _, loseReply := range []bool{false, true} {
			s := openStore(t, options())
			s.engine = &brokenEngine{engine: s.engine, loseReply: loseReply, commits: 2}
			must(t, s.AddRate(t.Context(), testRate()))
			must(t, s.IngestMachines(t.Context(), testMachines()))
			broken := 0
			ingestThrough(t, s, 100, func(int) {}, func(err error) {
				if broken++; !errors.Is(err, errBroken) {
					t.Fatal(err)
				}
			})
			if broken < 5 {
				t.Errorf("only %d commits failed", broken)
			}
			compute(t, s, workloadEnd)
			equalDigests(t, digest(t, s), want)
		}
	})
}
