package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

// awaitQuiesced waits until a group frozen for the owner is quiesced.
func awaitQuiesced(t *testing.T, g *ClaimGroup) {
	t.Helper()
	waitUntil(t, "it stands still", func() bool {
		if g.IsVersion1() {
			g.FreezeForOwner(true)
		}
		return g.Quiesced()
	})
}

// usesNoCPU reports whether a group uses no CPU for a while.
func usesNoCPU(g *ClaimGroup) bool {
	before, _ := g.Usage()
	<-time.After(30 * time.Millisecond)
	after, _ := g.Usage()
	return before.UserCPU+before.SystemCPU == after.UserCPU+after.SystemCPU
}

// TestHold freezes a task for the owner. It stays frozen whatever Freeze and Thaw do, and
// afterwards has the state that these left.
func TestHold(t *testing.T) {
	for _, first := range []bool{false, true} {
		name := "version 2"
		if first {
			name = "freezer"
		}
		t.Run(name, func(t *testing.T) {
			h := testHost(t)
			skipUnless(t, h, h.Enforcement().Freeze && (!first || h.v1["freezer"]), "freeze")
			if first {
				h.taskBase = ""
			}
			testFreezeForOwner(t, testGroup(t, h, "1", GroupLimits{}))
		})
	}
}

func testFreezeForOwner(t *testing.T, g *ClaimGroup) {
	p := startIn(t, g, spinScript)
	p.release(t)
	waitUntil(t, "it runs", func() bool { return !usesNoCPU(g) })
	if g.WasFrozenOutside() || g.Quiesced() {
		t.Error("held before it was")
	}
	hold := func(on bool) {
		t.Helper()
		if err := g.FreezeForOwner(on); err != nil {
			t.Fatal(err)
		}
	}
	hold(true)
	awaitQuiesced(t, g)
	if !g.WasFrozenOutside() || !usesNoCPU(g) {
		t.Error("held, and it runs")
	}
	if err := g.Freeze(); err != nil {
		t.Errorf("suspended while held: %v", err)
	}
	if err := g.Thaw(); err != nil || !usesNoCPU(g) {
		t.Errorf("thawed while held: %v", err)
	}
	late := startIn(t, g, "exit 3") // forked into a frozen group
	hold(false)
	waitUntil(t, "it goes on", func() bool { return !usesNoCPU(g) })
	if status := late.run(t); status.ExitStatus() != 3 {
		t.Errorf("what came in while it was held: %v", status)
	}
	if err := g.Freeze(); err != nil {
		t.Fatal(err)
	}
	hold(true)
	hold(false)
	if !usesNoCPU(g) {
		t.Error("suspended before it was held, it runs afterwards")
	}
	hold(true)
	awaitQuiesced(t, g)
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	p.Wait()
	waitUntil(t, "nothing is left", func() bool { u, _ := g.Usage(); return u.Processes == 0 })
}

// TestApart checks that one process of a frozen task may run, and no other.
func TestApart(t *testing.T) {
	h := testHost(t)
	skipUnless(t, h, h.Enforcement().Freeze, "freeze")
	g := testGroup(t, h, "1", GroupLimits{})
	file := filepath.Join(t.TempDir(), "count")
	other, one := startIn(t, g, spinScript), startIn(t, g, "while :; do echo >>"+file+"; done")
	other.release(t)
	one.release(t)
	size := func() int64 {
		info, err := os.Stat(file)
		if err != nil {
			return 0
		}
		return info.Size()
	}
	waitUntil(t, "it counts", func() bool { return size() > 0 })
	g.FreezeForOwner(true)
	awaitQuiesced(t, g)
	before := size()
	if err := g.RunOneWhileFrozen(one.Process.Pid, func() {
		waitUntil(t, "it counts on", func() bool { return size() > before })
	}); err != nil {
		t.Fatal(err)
	}
	awaitQuiesced(t, g)
	if before = size(); !usesNoCPU(g) || size() != before {
		t.Error("brought back, it runs")
	}
}

// testYielding returns a host with yielding groups. All directories above them yield,
// too, so it shares none with other tests.
func testYielding(t *testing.T) *ParentGroup {
	t.Helper()
	h := testHostAt(t, fmt.Sprintf("/roost-test-%d-%d", os.Getpid(), time.Now().UnixNano()))
	h.YieldToOwner()
	return h
}

// TestShrink checks that memory of a frozen task, its page cache, can be reclaimed.
func TestShrink(t *testing.T) {
	h := testYielding(t)
	skipUnless(t, h, h.Enforcement().Memory && h.Enforcement().Freeze, "memory")
	g := testGroup(t, h, "1", GroupLimits{Memory: 128 * roost.MiB})
	h.SuspendYielding(true) // while it writes: it would get no core of a busy machine
	file := filepath.Join(t.TempDir(), "big")
	p := startIn(t, g, "dd if=/dev/zero of="+file+" bs=1M count=64 2>/dev/null; sync "+file+"; echo >"+file+".done; "+
		spinScript)
	p.release(t)
	waitUntil(t, "it is written", func() bool { _, err := os.Stat(file + ".done"); return err == nil })
	h.SuspendYielding(false)
	g.FreezeForOwner(true)
	awaitQuiesced(t, g)
	u, _ := g.Usage()
	if u.Cache < 16*roost.MiB {
		t.Skipf("SKIPPED: files are not cached here: %+v", u)
	}
	freed, err := g.TrimMemory()
	if err != nil {
		t.Fatal(err)
	}
	if after, _ := g.Usage(); freed < u.Cache/2 || after.Cache > u.Cache/2 {
		t.Errorf("freed %v of %v, %v is left", freed, u.Cache, after.Cache)
	}
}

// TestYield checks the kernel settings of yielding groups.
func TestYield(t *testing.T) {
	h := testYielding(t)
	skipUnless(t, h, h.Enforcement().CPU, "CPU time")
	g := testGroup(t, h, "1", GroupLimits{Weight: 100, Memory: 64 * roost.MiB})
	for _, dir := range h.parentDirs("cpu") {
		path := filepath.Join(dir, "cpu.idle")
		if text, err := os.ReadFile(path); err == nil && strings.TrimSpace(string(text)) != "1" {
			t.Errorf("%s: got %q", path, text)
		}
	}
	for i, want := range []string{"0", "0", "0", "1"} {
		h.SuspendYielding(i < 2)
		for _, dir := range h.parentDirs("cpu") {
			if text, err := os.ReadFile(filepath.Join(dir, "cpu.idle")); err == nil &&
				strings.TrimSpace(string(text)) != want {
				t.Errorf("step %d: %s: idle is %q, want %s", i, dir, text, want)
			}
		}
	}
	want := map[string]string{filepath.Join(g.version1Dir("memory"), "memory.swappiness"): "0"}
	if g.unified != "" {
		want = map[string]string{filepath.Join(g.unified, "memory.swap.max"): "0"}
	}
	for path, value := range want {
		if text, err := os.ReadFile(path); err == nil && strings.TrimSpace(string(text)) != value {
			t.Errorf("%s: got %q, want %q", path, text, value)
		}
	}
}

// TestMost checks the CPU limit of all groups together, including groups made later, and
// that it can be removed.
func TestMost(t *testing.T) {
	h := testYielding(t)
	skipUnless(t, h, h.Enforcement().CPU, "CPU time")
	if err := h.SetCPUMax(1500); err != nil {
		t.Fatal(err)
	}
	testGroup(t, h, "1", GroupLimits{Weight: 100, Memory: 64 * roost.MiB})
	dir := h.parentDirs("cpu")[0]
	got := func() string {
		for _, name := range []string{"cpu.max", "cpu.cfs_quota_us"} {
			if text, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
				return strings.TrimSuffix(strings.TrimSpace(string(text)), " 100000")
			}
		}
		return "no file"
	}
	if got() != "150000" {
		t.Errorf("%s: got %s for one core and a half", dir, got())
	}
	for _, step := range []struct {
		most roost.MilliCPU
		want []string
	}{{500, []string{"50000"}}, {0, []string{"max", "-1"}}} {
		if err := h.SetCPUMax(step.most); err != nil || !slices.Contains(step.want, got()) {
			t.Errorf("got %s, %v, want one of %v", got(), err, step.want)
		}
	}
}
