package cgroup

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestFreezeAll freezes groups by their directories alone, in either version, and counts
// the frozen ones.
func TestFreezeAll(t *testing.T) {
	for _, version := range []string{"as the machine has it", "version 1"} {
		t.Run(version, func(t *testing.T) {
			h := testHost(t)
			skipUnless(t, h, h.Enforcement().Freeze, "freeze")
			if version == "version 1" {
				skipUnless(t, h, h.v1["freezer"], "freeze in version 1")
				h.taskBase = ""
			}
			busy, empty := testGroup(t, h, "1", GroupLimits{}), testGroup(t, h, "2", GroupLimits{})
			p := startIn(t, busy, spinScript)
			p.release(t)
			dirs := TaskDirs(TaskDir(busy.FreezeDir()).Parent())
			if len(dirs) != 2 || dirs[0] != TaskDir(busy.FreezeDir()) || dirs[1] != TaskDir(empty.FreezeDir()) {
				t.Fatalf("found %q", dirs)
			}
			parent := dirs[0].Parent()
			waitUntil(t, "it runs", func() bool { n, ok := CPUTime(parent); return n > 0 || !ok })
			dirs = append(dirs, TaskDir(filepath.Join(parent, "gone")))
			if n := CountFrozen(dirs); n != 0 {
				t.Errorf("%d stand still before", n)
			}
			if n, err := FreezeDirs(dirs, time.Second); n != 1 || err != nil {
				t.Fatalf("froze %d: %v", n, err)
			}
			if n := CountFrozen(dirs); n != 1 {
				t.Errorf("%d stand still", n)
			}
			if u, _ := busy.Usage(); !u.Frozen {
				t.Errorf("got %+v", u)
			}
			if u, _ := empty.Usage(); u.Frozen && !h.v1["freezer"] {
				t.Error("what was empty is frozen: a task would be born there and not move")
			}
			if err := busy.FreezeForOwner(false); err != nil || busy.Quiesced() {
				t.Fatalf("it still stands: %v", err)
			}
		})
	}
}

// TestFreezeAllYielding checks that yielding groups get CPU while they are being frozen,
// and yield again afterwards.
func TestFreezeAllYielding(t *testing.T) {
	h := testYielding(t)
	skipUnless(t, h, h.Enforcement().Freeze, "freeze")
	skipUnless(t, h, h.Enforcement().CPU, "CPU time")
	g := testGroup(t, h, "1", GroupLimits{Weight: 100})
	p := startIn(t, g, spinScript)
	p.release(t)
	dirs := []TaskDir{TaskDir(g.FreezeDir())}
	waitUntil(t, "it runs", func() bool { return dirs[0].Populated() })
	var want []string
	for _, dir := range h.parentDirs("cpu") {
		if _, err := os.Stat(filepath.Join(dir, "cpu.idle")); err == nil {
			want = append(want, filepath.Join(dir, "cpu.idle"))
		}
	}
	if got := yieldingAbove(dirs); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	setFrozenDirs(want, "0")
	if got := yieldingAbove(dirs); len(got) > 0 {
		t.Errorf("%q yield, and do not", got)
	}
	setFrozenDirs(want, "1")
	if n, err := FreezeDirs(dirs, 10*time.Second); n != 1 || err != nil {
		t.Fatalf("froze %d: %v", n, err)
	}
	if got := yieldingAbove(dirs); !slices.Equal(got, want) {
		t.Errorf("afterwards %q yield, want %q", got, want)
	}
}

func TestTaskDirIsChecked(t *testing.T) {
	for _, path := range []string{"", "roost", "/etc", "/sys/fs/cgroup/../../../etc", "/proc/1"} {
		if err := TaskDir(path).Check(); err == nil {
			t.Errorf("%q passes for a control group", path)
		}
	}
}
