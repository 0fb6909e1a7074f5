package cgroup

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

// testHost returns a host with a parent of this test's own, which is removed at the end.
func testHost(t *testing.T) *ParentGroup {
	t.Helper()
	return testHostAt(t, fmt.Sprintf("/roost/test-%d-%d", os.Getpid(), time.Now().UnixNano()))
}

func testHostAt(t *testing.T, parent string) *ParentGroup {
	t.Helper()
	h, err := Open(parent)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Sweep(nil); err != nil {
			t.Errorf("sweep: %v", err)
		}
		h.Close()
		for _, dir := range h.baseDirs() {
			if _, err := os.Stat(dir); err == nil {
				t.Errorf("%s is left", dir)
			}
		}
	})
	return h
}

// skipUnless skips a test on a machine without a feature.
func skipUnless(t *testing.T, h *ParentGroup, can bool, what string) {
	t.Helper()
	if !can {
		t.Skipf("SKIPPED: this machine cannot enforce %s: %q", what, h.Enforcement().Missing)
	}
}

func testGroup(t *testing.T, h *ParentGroup, name string, l GroupLimits) *ClaimGroup {
	t.Helper()
	g, err := h.MakeGroup(name, l)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// testProcess is a shell that joins a group before it runs its script.
type testProcess struct {
	*exec.Cmd
	in io.WriteCloser
}

// startIn starts a shell with a script in the group. The shell waits for run.
func startIn(t *testing.T, g *ClaimGroup, script string) *testProcess {
	t.Helper()
	c := exec.Command("/bin/sh", "-c", "read word; "+script)
	in, err := c.StdinPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	if err := g.Add(c.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if g.TaskDir() != "" {
		if err := moveProcess(g.TaskDir(), c.Process.Pid); err != nil {
			t.Fatal(err)
		}
	}
	return &testProcess{c, in}
}

func (p *testProcess) release(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(p.in, "go\n"); err != nil {
		t.Fatal(err)
	}
}

// run lets the shell run its script, and returns its exit status.
func (p *testProcess) run(t *testing.T) syscall.WaitStatus {
	t.Helper()
	p.release(t)
	p.Wait()
	return p.ProcessState.Sys().(syscall.WaitStatus)
}

// waitUntil waits for a condition.
func waitUntil(t *testing.T, what string, ok func() bool) {
	t.Helper()
	look, end := time.NewTicker(5*time.Millisecond), time.After(time.Minute)
	defer look.Stop()
	for !ok() {
		select {
		case <-look.C:
		case <-end:
			t.Fatalf("%s: it did not happen", what)
		}
	}
}

func TestMakeFindDelete(t *testing.T) {
	h := testHost(t)
	skipUnless(t, h, h.Enforcement().Version > 0 || h.Enforcement().Freeze, "anything")
	if _, ok := h.FindGroup("7"); ok {
		t.Error("a group is there before it is made")
	}
	g := testGroup(t, h, "7", GroupLimits{Weight: 100, Memory: 64 * roost.MiB, Pids: 10})
	for _, dir := range g.allDirs() {
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
	}
	if _, ok := h.FindGroup("7"); !ok {
		t.Error("the group is not found")
	}
	again, err := Open(h.parent)
	if err != nil {
		t.Fatal(err)
	}
	if found, ok := again.FindGroup("7"); !ok || found.TaskDir() != g.TaskDir() {
		t.Errorf("after a restart: found %v", ok)
	}
	p := startIn(t, g, "exec sleep 1000")
	p.release(t)
	if err := g.Delete(); err != nil {
		t.Fatal(err)
	}
	if p.Wait(); !p.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
		t.Errorf("what was in it: %v", p.ProcessState)
	}
	if err := g.Delete(); err != nil {
		t.Errorf("again: %v", err)
	}
	if _, err := g.Usage(); err == nil {
		t.Error("usage of a group that is gone: no error")
	}
}

func TestNamesThatEscape(t *testing.T) {
	h := testHost(t)
	for _, name := range []string{"", ".", "..", "../x", "a/b", "/x", "a\n", "cgroup.procs", `a\b`,
		string(make([]byte, 300))} {
		if _, err := h.MakeGroup(name, GroupLimits{}); err == nil {
			t.Errorf("Make(%q): no error", name)
		}
		if _, ok := h.FindGroup(name); ok {
			t.Errorf("Find(%q): found", name)
		}
	}
	for _, parent := range []string{"", "/", "roost/x", "/roost/..", "/roost//x", "/.."} {
		if _, err := Open(parent); err == nil {
			t.Errorf("Open(%q): no error", parent)
		}
	}
}

func TestSweep(t *testing.T) {
	h := testHost(t)
	skipUnless(t, h, h.Enforcement().Version > 0 || h.Enforcement().Freeze, "anything")
	present, lost := testGroup(t, h, "1", GroupLimits{}), testGroup(t, h, "2", GroupLimits{})
	stays, goes := startIn(t, present, "echo; sleep 1000"), startIn(t, lost, "exec sleep 1000")
	goes.release(t)
	// a task with the rights for it could do this
	if err := os.Mkdir(filepath.Join(lost.allDirs()[0], "below"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := h.Sweep(map[string]bool{"1": true}); err != nil {
		t.Fatal(err)
	}
	if goes.Wait(); !goes.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
		t.Errorf("swept: %v", goes.ProcessState)
	}
	if _, ok := h.FindGroup("2"); ok {
		t.Error("the group is still there")
	}
	if err := stays.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("kept: %v", err)
	}
}
