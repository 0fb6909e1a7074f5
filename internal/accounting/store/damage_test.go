package store

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// TestDamagedFiles holds that an error names the file that is damaged, and that the other
// months are served.
func TestDamagedFiles(t *testing.T) {
	o := Options{Directory: t.TempDir()}
	s := openStore(t, o)
	ingestAll(t, s, 1, testFeed(1, 40), 500)
	must(t, s.Close())
	path := filepath.Join(o.Directory, "month-2026-10.db")
	data, err := os.ReadFile(path)
	must(t, err)
	copy(data[4096:], bytes.Repeat([]byte{0x5a}, len(data)-8192))
	must(t, os.WriteFile(path, data, 0o600))

	s = openStore(t, o)
	if err := s.Check(t.Context()); err == nil || !strings.Contains(err.Error(), path+" is damaged") {
		t.Errorf("got %v", err)
	}
	for _, err = range s.Reader(t.Context()).Attempts(accounting.Selection{}) {
		if err != nil {
			break
		}
	}
	if err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
	n := 0
	for _, j := range testFeed(1, 40) {
		if j.Job == nil || j.Job.Month != accounting.NewMonth(2026, 11) || j.Job.Ended == 0 {
			continue
		}
		for range s.Reader(t.Context()).JobAttempts(j.Job.JobKey) {
			n++
		}
	}
	if n == 0 {
		t.Error("no attempts of another month")
	}
	must(t, s.Close())

	main := filepath.Join(o.Directory, "main.db")
	must(t, os.WriteFile(main, []byte(strings.Repeat("this is no database ", 1000)), 0o600))
	os.Remove(main + "-wal")
	if s, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), main+" is damaged") {
		t.Errorf("got %v", err)
		s.Close()
	}
}

// TestNewerSchema holds that an old program refuses what a newer release has written.
func TestNewerSchema(t *testing.T) {
	onEngines(t, func(t *testing.T, options func() Options) {
		o := options()
		s := openStore(t, o)
		newer := `PRAGMA user_version = 99`
		if o.Postgres != "" {
			newer = `INSERT INTO schema_version VALUES (99)`
		}
		_, err := s.engine.writer().ExecContext(t.Context(), newer)
		must(t, err)
		must(t, s.Close())
		if s, err := Open(t.Context(), o); !errors.Is(err, roost.Conflict) || !strings.Contains(err.Error(),
			"newer release") {
			t.Errorf("got %v", err)
			s.Close()
		}
	})
}

// TestFullDisk holds that a store on a full disk refuses entries and answers queries. It
// goes on when there is space again.
func TestFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root can mount a small disk")
	}
	dir := t.TempDir()
	if err := syscall.Mount("roost-test", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("SKIPPED: mount of a small disk: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	s := openStore(t, Options{Directory: dir})
	t.Cleanup(func() { s.Close() })
	feed := testFeed(1, 600)
	var err error
	for err == nil {
		next := s.NextNumber(testSource(1)) - 1
		if next >= uint64(len(feed)) {
			t.Fatal("everything fits on the disk")
		}
		err = s.Ingest(t.Context(), testSource(1), testHost(1), feed[next:min(next+200, uint64(len(feed)))])
	}
	if !errors.Is(err, roost.Exhausted) || !strings.Contains(err.Error(), dir) {
		t.Fatalf("got %v", err)
	}
	stored := collect(t, s.Reader(t.Context()).Jobs(accounting.Selection{By: accounting.BySubmit}))
	if len(stored) == 0 {
		t.Error("no job was stored before")
	}
	must(t, syscall.Mount("roost-test", dir, "tmpfs", syscall.MS_REMOUNT, "size=64m"))
	ingestAll(t, s, 1, feed, 500)
	must(t, s.AddRate(t.Context(), testRate()))
	compute(t, s, workloadEnd)
	clean := openStore(t, Options{Directory: t.TempDir()})
	must(t, clean.AddRate(t.Context(), testRate()))
	ingestAll(t, clean, 1, feed, 500)
	compute(t, clean, workloadEnd)
	equalDigests(t, digest(t, s), digest(t, clean))
}
