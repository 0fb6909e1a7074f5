package jobhooks

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/config"
)

// newEnds opens a runner with an end hook that is a shell script. Its files are in the
// directory.
func newEnds(t *testing.T, script string) (r *Runner, dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "roost-hooks") // others may enter it, unlike t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path, log := filepath.Join(dir, "hook"), filepath.Join(dir, "log")
	text := "#!/bin/sh\nlog=" + log + "\n" + script + "\n"
	err = errors.Join(os.Chmod(dir, 0o755), os.Mkdir(log, 0o777), os.Chmod(log, 0o777),
		os.WriteFile(path, []byte(text), 0o755))
	if err != nil {
		t.Fatal(err)
	}
	return reopen(t, dir), dir
}

func reopen(t *testing.T, dir string) *Runner {
	t.Helper()
	r, err := Open("n1", config.JobHooks{End: filepath.Join(dir, "hook"), Timeout: time.Minute, AtOnce: 2,
		User: "nobody"}, filepath.Join(dir, "spool"), nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func someEnds(n int) (ends []Ended) {
	for i := range n {
		ends = append(ends, Ended{Attempt: Attempt{Task: fmt.Sprintf("%d.n1", i+1)}, Lost: "its node was lost"})
	}
	return ends
}

// spooled counts the files of a spool.
func spooled(t *testing.T, dir string) int {
	t.Helper()
	files, err := os.ReadDir(filepath.Join(dir, "spool"))
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

// TestEndsAreOnDisk checks that ends are on disk before their events are. They are read
// again until the hook has seen them.
func TestEndsAreOnDisk(t *testing.T) {
	r, dir := newEnds(t, `cat >>$log/seen; exit 0`)
	r.EnqueueEnds(someEnds(3)) // and the schedd is killed here
	if spooled(t, dir) != 1 {
		t.Fatal("nothing is on disk")
	}
	r = reopen(t, dir)
	for range 3 {
		e, _ := r.takeDue(time.Now())
		if e == nil {
			t.Fatal("an end is lost")
		}
		r.runEnd(t.Context(), e)
	}
	seen, _ := os.ReadFile(filepath.Join(dir, "log", "seen"))
	if n := strings.Count(string(seen), `"lost":"its node was lost"`); n != 3 || spooled(t, dir) != 0 {
		t.Errorf("seen %d times, want 3; %d files are left:\n%s", n, spooled(t, dir), seen)
	}
}

// TestFailedEnds checks when an end hook that fails is run again, and when it is given
// up.
func TestFailedEnds(t *testing.T) {
	r, dir := newEnds(t, `echo "the server is away"; exit 3`)
	r.EnqueueEnds(someEnds(1))()
	e, _ := r.takeDue(time.Now())
	for i, want := range endWaits {
		before := time.Now()
		r.runEnd(t.Context(), e)
		if early, wait := r.takeDue(before.Add(want - time.Second)); early != nil || wait > 3*time.Second+want/10 {
			t.Errorf("after %d failures: %v, and a wait of %v", i+1, early, wait)
		}
		if e, _ = r.takeDue(time.Now().Add(want)); e == nil {
			t.Fatalf("after %d failures it is not run again in %v", i+1, want)
		}
	}
	if spooled(t, dir) != 1 {
		t.Error("it is not on disk any more")
	}
	r.runEnd(t.Context(), e)
	if e, _ := r.takeDue(time.Now().Add(time.Hour)); e != nil || spooled(t, dir) != 0 || r.pending != 0 {
		t.Errorf("it is not given up: %v, %d files, %d pending", e, spooled(t, dir), r.pending)
	}
}

// TestTooManyEnds checks that the ends that wait have a bound.
func TestTooManyEnds(t *testing.T) {
	r, _ := newEnds(t, "exit 0")
	r.EnqueueEnds(someEnds(maxPending + 5))()
	r.EnqueueEnds(someEnds(1))()
	if len(r.arrived) != maxPending || r.pending != maxPending {
		t.Errorf("%d wait, want %d", len(r.arrived), maxPending)
	}
}
