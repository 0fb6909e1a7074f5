package feed

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-batch/roost/internal/appendlog"
	"github.com/roost-batch/roost/internal/damage"
)

// TestDamage damages each file of the feed while the schedd is down. The accountant still
// gets what the jobs say: the feed as it was, or a gap and then the jobs themselves.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	s := openSchedd(t, dir, Options{Wanted: true, Bounds: Bounds{Segment: 3000}})
	s.jobs = newRandomJobs(6, s.queue)
	a := newTestStore()
	for i := range 150 {
		s.step()
		if s.write(); i == 60 {
			a.pull(s, false)
		}
	}
	s.write()
	s.close()
	paths, err := filepath.Glob(filepath.Join(s.Feed.dir(), "*"))
	if err != nil || len(paths) < 2 {
		t.Fatalf("files %q, %v", paths, err)
	}
	for _, path := range paths { // the room for further records is not part of the log
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, bytes.TrimRight(whole, "\x00"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	gaps, trials := 0, 0
	for _, path := range append(paths[:2:2], appendlog.MarkPath(s.Feed.dir())) {
		damage.ForEach(t, path, 12, func(what string) {
			copied := filepath.Join(t.TempDir(), "copy")
			if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			s := openSchedd(t, copied, Options{})
			got := a.clone()
			s.write()
			got.pull(s, true)
			checkSameRows(t, got.rows, s.truth())
			gaps, trials = gaps+min(got.gaps-a.gaps, 1), trials+1
			s.jobs = newRandomJobs(7, s.queue)
			s.jobs.keys = 10_000
			s.commit(s.jobs.submit(t, 2))
			s.write()
			got.pull(s, true)
			checkSameRows(t, got.rows, s.truth())
			s.close()
			if t.Failed() {
				t.Fatal(filepath.Base(path), what)
			}
			os.RemoveAll(copied)
		})
	}
	if gaps == 0 || gaps == trials {
		t.Errorf("%d of %d damages led to a gap", gaps, trials)
	}
}
