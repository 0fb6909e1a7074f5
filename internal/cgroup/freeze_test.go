package cgroup

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

func TestFreezeThawKill(t *testing.T) {
	h := testHost(t)
	skipUnless(t, h, h.Enforcement().Freeze, "freeze")
	g := testGroup(t, h, "1", GroupLimits{})
	p := startIn(t, g, "sh -c '"+spinScript+"' & "+spinScript)
	p.release(t)
	waitUntil(t, "both run", func() bool { u, _ := g.Usage(); return u.Processes == 2 })
	if err := g.Freeze(); err != nil {
		t.Fatal(err)
	}
	before, _ := g.Usage()
	for range 1000 {
		syscall.Getpid()
	}
	after, _ := g.Usage()
	if !after.Frozen || after.Processes != 2 || after.UserCPU != before.UserCPU {
		t.Errorf("frozen: %+v, then %+v", before, after)
	}
	if err := g.Thaw(); err != nil {
		t.Fatal(err)
	}
	if u, _ := g.Usage(); u.Frozen {
		t.Error("thawed, it is frozen")
	}
	if err := g.Freeze(); err != nil {
		t.Fatal(err)
	}
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	if p.Wait(); p.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("killed while frozen: %v", p.ProcessState)
	}
	waitUntil(t, "nothing is left", func() bool { u, _ := g.Usage(); return u.Processes == 0 })
}

// TestClone checks that a process can be cloned into the task directory.
func TestClone(t *testing.T) {
	h := testHost(t)
	g := testGroup(t, h, "1", GroupLimits{})
	if g.TaskDir() == "" || g.IsVersion1() {
		t.Skip("SKIPPED: there is no control group of version 2 for tasks here")
	}
	dir, err := os.Open(g.TaskDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	c := exec.Command("sleep", "1000")
	c.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if u, _ := g.Usage(); u.Processes != 1 {
		t.Errorf("got %+v", u)
	}
	g.Kill()
	c.Wait()
}

// TestThawOfKilledTasks thaws a sandbox whose first process was killed while it was
// frozen in version 1. No process may run for even a moment, whoever thaws it.
func TestThawOfKilledTasks(t *testing.T) {
	for name, thaw := range map[string]func(*ClaimGroup) error{
		"its host":       func(g *ClaimGroup) error { return g.FreezeForOwner(false) },
		"by its path":    func(g *ClaimGroup) error { return TaskDir(g.FreezeDir()).Thaw() },
		"one that waits": (*ClaimGroup).Thaw,
	} {
		t.Run(name, func(t *testing.T) { testThawOfKilled(t, name == "one that waits", thaw) })
	}
}

func testThawOfKilled(t *testing.T, inner bool, thaw func(*ClaimGroup) error) {
	h := testHost(t)
	skipUnless(t, h, h.v1["freezer"], "freeze in version 1")
	h.taskBase = ""
	g := testGroup(t, h, "1", GroupLimits{})
	path := filepath.Join(t.TempDir(), "lines")
	c := exec.Command("/bin/sh", "-c",
		`read word; for i in 1 2 3 4 5 6 7 8; do while :; do echo line; done >>"$1" & done; wait`, "sh", path)
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	in, err := c.StdinPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); g.Kill(); c.Wait() })
	if err := moveProcess(g.TaskDir(), c.Process.Pid); err != nil {
		t.Fatal(err)
	}
	io.WriteString(in, "go\n")
	size := func() int64 {
		info, err := os.Stat(path)
		if err != nil {
			return 0
		}
		return info.Size()
	}
	waitUntil(t, "it writes", func() bool { return size() > 0 && len(processes(g.TaskDir())) == 9 })
	if inner {
		err = g.Freeze()
	} else {
		err = TaskDir(g.FreezeDir()).Freeze(freezeTimeout)
	}
	if err != nil {
		t.Fatal(err)
	}
	before := size()
	c.Process.Kill()
	if err := thaw(g); err != nil {
		t.Fatal(err)
	}
	c.Wait()
	if after := size(); after != before {
		t.Errorf("%d bytes were written after the first process was killed", after-before)
	}
}

// TestFreezer checks that the freezer of version 1 behaves the same where version 2 is
// missing.
func TestFreezer(t *testing.T) {
	h := testHost(t)
	skipUnless(t, h, h.v1["freezer"], "freeze in version 1")
	h.taskBase = ""
	g := testGroup(t, h, "1", GroupLimits{})
	if !g.IsVersion1() {
		t.Fatalf("task directory %s", g.TaskDir())
	}
	p := startIn(t, g, spinScript)
	p.release(t)
	if err := g.Freeze(); err != nil {
		t.Fatal(err)
	}
	if u, _ := g.Usage(); !u.Frozen {
		t.Errorf("got %+v", u)
	}
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	if p.Wait(); p.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("killed while frozen: %v", p.ProcessState)
	}
}
