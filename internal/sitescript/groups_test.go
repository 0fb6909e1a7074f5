package sitescript

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/cgroup"
)

// escaping begins children that leave the process group and the session, and writes their
// pids into the file $1. They ignore signals.
const escaping = `
trap '' TERM HUP INT
child='trap "" TERM HUP INT; echo $$ >> "$0"; exec sleep 1000'
setsid bash -c "$child" "$1" < /dev/null &
set -m
bash -c "$child" "$1" < /dev/null &
set +m
(setsid bash -c "$child" "$1" < /dev/null > /dev/null 2>&1 &)
bash -c "$child" "$1" &
until [ "$(wc -l < "$1")" = 4 ]; do sleep 0.01; done
`

// unmarked begins a child whose environment does not show where it comes from.
const unmarked = `
env -i setsid bash -c 'echo $$ >> "$0"; exec sleep 1000' "$1" &
until [ -s "$1" ]; do sleep 0.01; done
`

// writeEscaping writes a script, and returns its path and that of the file of pids.
func writeEscaping(t *testing.T, text string) (path, pids string) {
	t.Helper()
	path = writeScript(t, ": > \"$1\"\n"+text)
	pids = filepath.Join(filepath.Dir(path), "pids")
	t.Cleanup(func() {
		for _, pid := range livingOf(t, pids) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return path, pids
}

// livingOf lists the processes of a file of pids that are alive.
func livingOf(t *testing.T, pids string) (alive []int) {
	t.Helper()
	text, err := os.ReadFile(pids)
	if err != nil {
		t.Fatal(err)
	}
	for word := range strings.FieldsSeq(string(text)) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		if isAlive(pid) {
			alive = append(alive, pid)
		}
	}
	return alive
}

// testGroups are groups as this machine has them.
func testGroups(t *testing.T, dir string) *Groups {
	t.Helper()
	g, err := OpenGroups(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	if g.parent == nil {
		t.Skip("SKIP: this process may make no control groups")
	}
	return g
}

// TestEverythingEnds checks that nothing that a script has started outlives it, with
// control groups and without. Scripts end at the time limit, or by themselves.
func TestEverythingEnds(t *testing.T) {
	for _, test := range []struct {
		name, script string
		grouped      bool
		within       time.Duration
		want         error
	}{
		{"with groups, too slow", escaping + "sleep 1000", true, time.Second, context.DeadlineExceeded},
		{"with groups, in time", escaping, true, time.Minute, nil},
		{"with groups, unmarked, too slow", unmarked + "sleep 1000", true, time.Second, context.DeadlineExceeded},
		{"with groups, unmarked, in time", unmarked, true, time.Minute, nil},
		{"without, too slow", escaping + "sleep 1000", false, time.Second, context.DeadlineExceeded},
		{"without, in time", escaping, false, time.Minute, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			var groups *Groups
			if test.grouped {
				groups = testGroups(t, t.TempDir())
			}
			path, pids := writeEscaping(t, test.script)
			ctx, cancel := context.WithTimeout(t.Context(), test.within)
			defer cancel()
			began := time.Now()
			_, err := Run(ctx, Script{Path: path, Arguments: []string{pids}, Groups: groups, MaxOutput: 100,
				Environment: []string{"PATH=/usr/bin:/bin"}})
			if !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if alive := livingOf(t, pids); len(alive) > 0 {
				t.Errorf("processes %v of the script live on", alive)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// TestLeftAtStart checks that a daemon ends what the scripts of an earlier start have
// left. Nothing of another daemon is touched.
func TestLeftAtStart(t *testing.T) {
	for _, grouped := range []bool{true, false} {
		t.Run(map[bool]string{true: "grouped", false: "marked"}[grouped], func(t *testing.T) {
			own, other := t.TempDir(), t.TempDir()
			left := func(dir string) string {
				g := testGroups(t, dir)
				if !grouped {
					g.parent = nil
				}
				path, pids := writeEscaping(t, escaping)
				marks := []string{"PATH=/usr/bin:/bin"}
				holder, err := g.open(false)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(holder.close)
				if !grouped { // with a group the mark is not needed
					marks = append(marks, holder.mark)
				}
				cmd := exec.Command(path, pids)
				cmd.Env, cmd.SysProcAttr = marks, &syscall.SysProcAttr{Setsid: true}
				holder.prepare(cmd.SysProcAttr)
				if err := cmd.Run(); err != nil { // and nobody ends what it has left
					t.Fatal(err)
				}
				if alive := livingOf(t, pids); len(alive) != 4 {
					t.Fatalf("%d processes are left, want 4", len(alive))
				}
				return pids
			}
			of, strange := left(own), left(other)
			if _, err := OpenGroups(own); err != nil {
				t.Fatal(err)
			}
			if alive := livingOf(t, of); len(alive) > 0 {
				t.Errorf("processes %v of the earlier start live on", alive)
			}
			if alive := livingOf(t, strange); len(alive) != 4 {
				t.Errorf("%d processes of another daemon are left, want 4", len(alive))
			}
		})
	}
}

// TestLingering checks that what a prologue has left as it ended in time lives on, and
// outlives the startd too. What it left at its time limit does not.
func TestLingering(t *testing.T) {
	dir := t.TempDir()
	g := testGroups(t, dir)
	path, pids := writeEscaping(t, escaping)
	run := Script{Path: path, Arguments: []string{pids}, Groups: g, Lingers: true,
		Environment: []string{"PATH=/usr/bin:/bin"}}
	if _, err := Run(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenGroups(dir); err != nil {
		t.Fatal(err)
	}
	alive := livingOf(t, pids)
	if len(alive) != 4 {
		t.Errorf("%d processes are left, want 4", len(alive))
	}
	for _, pid := range alive {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	run.Path, pids = writeEscaping(t, unmarked+"sleep 1000")
	run.Arguments = []string{pids}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := Run(ctx, run); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if alive := livingOf(t, pids); len(alive) > 0 {
		t.Errorf("processes %v live on", alive)
	}
}

// TestGroupsVanish checks that runs leave no control groups.
func TestGroupsVanish(t *testing.T) {
	g := testGroups(t, t.TempDir())
	path, pids := writeEscaping(t, escaping)
	if _, err := Run(t.Context(), Script{Path: path, Arguments: []string{pids}, Groups: g,
		Environment: []string{"PATH=/usr/bin:/bin"}}); err != nil {
		t.Fatal(err)
	}
	if g.parent.HasGroups() {
		t.Error("a control group is left")
	}
	g.Close()
	h, err := cgroup.OpenUnlimited("/roost-scripts/" + g.owner)
	if err != nil {
		t.Fatal(err)
	}
	if h.HasGroups() {
		t.Error("the directory of the groups is left")
	}
}

// TestOutputIsBounded checks that of a long output only the beginning is retained. The
// script does not notice that.
func TestOutputIsBounded(t *testing.T) {
	path, pids := writeEscaping(t, "head -c 50000000 /dev/zero | tr '\\0' x")
	out, err := Run(t.Context(), Script{Path: path, Arguments: []string{pids}, MaxOutput: 1000,
		Environment: []string{"PATH=/usr/bin:/bin"}})
	if err != nil || len(out.Text) != 1000 || !out.Truncated {
		t.Errorf("%d bytes, truncated %v, %v", len(out.Text), out.Truncated, err)
	}
}

// BenchmarkRun measures a script that does nothing.
func BenchmarkRun(b *testing.B) {
	path := filepath.Join(b.TempDir(), "script")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
		b.Fatal(err)
	}
	for _, grouped := range []bool{true, false} {
		b.Run(map[bool]string{true: "grouped", false: "marked"}[grouped], func(b *testing.B) {
			var g *Groups
			if grouped {
				g, _ = OpenGroups(b.TempDir())
				defer g.Close()
			}
			for b.Loop() {
				if _, err := Run(b.Context(), Script{Path: path, Groups: g}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
