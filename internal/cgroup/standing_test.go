package cgroup

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestFreezeAll: who knows nothing of groups but their directories freezes them, in either version, and counts those in which something stands still.
func TestFreezeAll(t *testing.T) {
	for _, version := range []string{"as the machine has it", "version 1"} {
		t.Run(version, func(t *testing.T) {
			h := testHost(t)
			need(t, h, h.Can().Freeze, "freeze")
			if version == "version 1" {
				need(t, h, h.v1["freezer"], "freeze in version 1")
				h.taskBase = ""
			}
			busy, empty := testGroup(t, h, "1", Limits{}), testGroup(t, h, "2", Limits{})
			p := startIn(t, busy, spin)
			p.release(t)
			dirs := TaskDirs(TaskDir(busy.HoldDir()).Parent())
			if len(dirs) != 2 || dirs[0] != TaskDir(busy.HoldDir()) || dirs[1] != TaskDir(empty.HoldDir()) {
				t.Fatalf("found %q", dirs)
			}
			parent := dirs[0].Parent()
			until(t, "it runs", func() bool { n, ok := CPU(parent); return n > 0 || !ok })
			dirs = append(dirs, TaskDir(filepath.Join(parent, "gone")))
			if n := Standing(dirs); n != 0 {
				t.Errorf("%d stand still before", n)
			}
			if n, err := FreezeAll(dirs, time.Second); n != 1 || err != nil {
				t.Fatalf("froze %d: %v", n, err)
			}
			if n := Standing(dirs); n != 1 {
				t.Errorf("%d stand still", n)
			}
			if u, _ := busy.Usage(); !u.Frozen {
				t.Errorf("got %+v", u)
			}
			if u, _ := empty.Usage(); u.Frozen && !h.v1["freezer"] {
				t.Error("what was empty is frozen: a task would be born there and not move")
			}
			if err := busy.Hold(false); err != nil || busy.Stands() {
				t.Fatalf("it still stands: %v", err)
			}
		})
	}
}

// TestFreezeAllYielding: groups that yield have time while they are stopped, and yield again when they stand.
func TestFreezeAllYielding(t *testing.T) {
	h := testYielding(t)
	need(t, h, h.Can().Freeze, "freeze")
	need(t, h, h.Can().CPU, "CPU time")
	g := testGroup(t, h, "1", Limits{Weight: 100})
	p := startIn(t, g, spin)
	p.release(t)
	dirs := []TaskDir{TaskDir(g.HoldDir())}
	until(t, "it runs", func() bool { return dirs[0].Populated() })
	var want []string
	for _, dir := range h.above("cpu") {
		if _, err := os.Stat(filepath.Join(dir, "cpu.idle")); err == nil {
			want = append(want, filepath.Join(dir, "cpu.idle"))
		}
	}
	if got := yieldingAbove(dirs); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	setAll(want, "0")
	if got := yieldingAbove(dirs); len(got) > 0 {
		t.Errorf("%q yield, and do not", got)
	}
	setAll(want, "1")
	if n, err := FreezeAll(dirs, 10*time.Second); n != 1 || err != nil {
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
