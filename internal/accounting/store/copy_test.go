package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// copiedStore makes a store with all kinds of rows, and closes it.
func copiedStore(t *testing.T) (o Options, digest []string) {
	o = Options{Directory: t.TempDir()}
	s, ctx := openStore(t, o), t.Context()
	must(t, s.AddRate(ctx, testRate()))
	feed := testFeed(1, 60)
	ingestAll(t, s, 1, append(feed[:200:200], feed[220:]...), 50) // with a gap
	ingestAll(t, s, 2, testFeed(2, 40), 50)
	must(t, s.IngestMachines(ctx, []accounting.MachineEvent{
		classEvent("n1", "big", workloadStart, accounting.MachineAdded),
		classEvent("n2", "small", workloadStart, accounting.MachineAdded),
		classEvent("n1", "small", workloadStart+accounting.DayMillis, accounting.MachineUpdated)}))
	compute(t, s, workloadEnd)
	october := accounting.MonthOf(workloadStart)
	must(t, s.SetBudget(ctx, accounting.Budget{Payer: accounting.Payer{Owner: "ann"}, From: october, To: october,
		Amount: 5, By: "root"}))
	must(t, s.Adjust(ctx, "1", accounting.Adjustment{Payer: accounting.Payer{Project: "p1"}, Month: october,
		Amount: 7, Reason: "by hand", By: "root", Set: 1}))
	must(t, s.CloseMonth(ctx, october, "root", (october+1).Start()))
	ingestAll(t, s, 3, testFeed(3, 5), 50) // hours and charges that are due
	digest, err := s.Digest(ctx)
	must(t, err)
	must(t, s.Close())
	return o, digest
}

// TestCopy copies a store to PostgreSQL. It has the same digest there, goes on with the
// same feeds, and computes what was due.
func TestCopy(t *testing.T) {
	address := postgresAddress(t)
	o, want := copiedStore(t)
	openStore(t, Options{Postgres: address}).Close() // an accountant that has stored nothing
	both := Options{Directory: o.Directory, Postgres: address}
	var parts []CopiedPart
	must(t, Copy(t.Context(), both, func(p CopiedPart) { parts = append(parts, p) }))
	if len(parts) != 3 || parts[0].Month != 0 || parts[1].Month != accounting.MonthOf(workloadStart) ||
		parts[1].Rows < 300 || parts[1].Digest == parts[2].Digest {
		t.Errorf("the parts are %+v", parts)
	}
	if err := Copy(t.Context(), both, func(CopiedPart) {}); !errors.Is(err, roost.Conflict) {
		t.Errorf("into a database that has accounts: %v", err)
	}
	copied, ctx := openStore(t, Options{Postgres: address}), t.Context()
	got, err := copied.Digest(ctx)
	must(t, err)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	must(t, copied.Check(ctx))
	if err := Copy(ctx, both, func(CopiedPart) {}); !errors.Is(err, roost.Conflict) {
		t.Errorf("while an accountant uses the database: %v", err)
	}
	original := openStore(t, o)
	for _, s := range []*Store{original, copied} {
		if n := s.NextNumber(testSource(3)); n != uint64(len(testFeed(3, 5)))+1 {
			t.Errorf("the next entry is %d", n)
		}
		ingestAll(t, s, 3, testFeed(3, 30), 50)
		compute(t, s, workloadEnd)
	}
	if want, err = original.Digest(ctx); err == nil {
		got, err = copied.Digest(ctx)
	}
	if must(t, err); !slices.Equal(got, want) {
		t.Errorf("later: got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if err := Copy(ctx, both, func(CopiedPart) {}); !errors.Is(err, roost.Conflict) {
		t.Errorf("while an accountant uses the files: %v", err)
	}
	none := Options{Directory: t.TempDir(), Postgres: address}
	if err := Copy(ctx, none, func(CopiedPart) {}); !errors.Is(err, roost.NotFound) {
		t.Errorf("of a directory without a store: %v", err)
	}
}

// TestCopyInterrupted ends a copy after each of its parts. The database is empty
// afterwards, and a copy into it succeeds.
func TestCopyInterrupted(t *testing.T) {
	address := postgresAddress(t)
	o, want := copiedStore(t)
	both := Options{Directory: o.Directory, Postgres: address}
	for end := range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		err := Copy(ctx, both, func(CopiedPart) {
			if n++; n > end {
				cancel()
			}
		})
		if cancel(); err == nil {
			t.Fatalf("the copy that was ended after part %d succeeded", end)
		}
	}
	must(t, Copy(t.Context(), both, func(CopiedPart) {}))
	s := openStore(t, Options{Postgres: address})
	got, err := s.Digest(t.Context())
	if must(t, err); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestCopyBack copies a store to PostgreSQL and back into files. The parts have the same
// digests both ways, and the files are the store that they were.
func TestCopyBack(t *testing.T) {
	address := postgresAddress(t)
	o, want := copiedStore(t)
	var there, back []CopiedPart
	both := Options{Directory: o.Directory, Postgres: address}
	must(t, Copy(t.Context(), both, func(p CopiedPart) { there = append(there, p) }))
	if err := CopyBack(t.Context(), both, func(CopiedPart) {}); !errors.Is(err, roost.Conflict) {
		t.Errorf("into a directory that has a store: %v", err)
	}
	files := Options{Directory: filepath.Join(t.TempDir(), "new"), Postgres: address}
	must(t, CopyBack(t.Context(), files, func(p CopiedPart) { back = append(back, p) }))
	if !slices.Equal(there, back) || len(back) < 3 {
		t.Errorf("the parts were\n%v\nand are\n%v", there, back)
	}
	left, err := filepath.Glob(filepath.Join(files.Directory, "*"))
	if must(t, err); slices.ContainsFunc(left, func(name string) bool {
		return filepath.Base(name) != "lock" && filepath.Ext(name) != ".db"
	}) {
		t.Errorf("the directory has %q", left)
	}
	s, ctx := openStore(t, Options{Directory: files.Directory}), t.Context()
	got, err := s.Digest(ctx)
	if must(t, err); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	must(t, s.Check(ctx))
	ingestAll(t, s, 3, testFeed(3, 30), 50) // it goes on
	compute(t, s, workloadEnd)
}

// TestCopyBackInterrupted ends a copy into files after each of its parts, and while its
// files are moved. No store is there afterwards, and the next copy succeeds.
func TestCopyBackInterrupted(t *testing.T) {
	address := postgresAddress(t)
	o, want := copiedStore(t)
	must(t, Copy(t.Context(), Options{Directory: o.Directory, Postgres: address}, func(CopiedPart) {}))
	files := Options{Directory: t.TempDir(), Postgres: address}
	mainFile := filepath.Join(files.Directory, "main.db")
	for end := range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		err := CopyBack(ctx, files, func(CopiedPart) {
			if n++; n > end {
				cancel()
			}
		})
		if _, serr := os.Stat(mainFile); err == nil || !errors.Is(serr, fs.ErrNotExist) {
			t.Fatalf("the copy that was ended after part %d: %v, and its main file %v", end, err, serr)
		}
		cancel()
	}
	must(t, CopyBack(t.Context(), files, func(CopiedPart) {}))
	// as one that was killed before main.db was moved
	unfinished := filepath.Join(files.Directory, unfinishedDirectory)
	must(t, os.Mkdir(unfinished, 0o700))
	must(t, os.Rename(mainFile, filepath.Join(unfinished, "main.db")))
	must(t, CopyBack(t.Context(), files, func(CopiedPart) {}))
	s := openStore(t, Options{Directory: files.Directory})
	got, err := s.Digest(t.Context())
	if must(t, err); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	must(t, s.Close())
	must(t, os.Remove(mainFile))
	if err := CopyBack(t.Context(), files, func(CopiedPart) {}); !errors.Is(err, roost.Conflict) {
		t.Errorf("into a directory with months that are of no copy: %v", err)
	}
}

// TestCopiedTables holds that every table of both databases is copied.
func TestCopiedTables(t *testing.T) {
	copied := map[string]bool{}
	for _, t := range append(mainTables(), monthTables()...) {
		copied[t.name] = true
	}
	if inserts := rowInserts(); len(inserts) != len(copied) {
		t.Errorf("%d tables are copied, and %d copied back", len(copied), len(inserts))
	}
	found := 0
	for _, s := range []schema{mainSchema(), monthSchema(), postgresSchema()} {
		steps, err := s.steps()
		must(t, err)
		for _, file := range steps {
			text, err := schemaFiles.ReadFile(file)
			must(t, err)
			for line := range strings.Lines(string(text)) {
				name, ok := strings.CutPrefix(line, "CREATE TABLE ")
				if name, _, _ = strings.Cut(name, " "); !ok {
					continue
				}
				if found++; !copied[name] {
					t.Errorf("%s: the table %s is not copied", file, name)
				}
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d tables were looked at", found)
	}
}
