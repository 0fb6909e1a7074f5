package cgroup

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

func TestFreezeThawKill(t *testing.T) {
	h := testHost(t)
	need(t, h, h.Can().Freeze, "freeze")
	g := testGroup(t, h, "1", Limits{})
	p := startIn(t, g, "sh -c '"+spin+"' & "+spin)
	p.release(t)
	until(t, "both run", func() bool { u, _ := g.Usage(); return u.Processes == 2 })
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
	until(t, "nothing is left", func() bool { u, _ := g.Usage(); return u.Processes == 0 })
}

// TestClone: a process can be born in the task directory.
func TestClone(t *testing.T) {
	h := testHost(t)
	g := testGroup(t, h, "1", Limits{})
	if g.TaskDir() == "" || g.Freezer() {
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

// TestFreezer: where there is no version 2, the hierarchy of version 1 does the same.
func TestFreezer(t *testing.T) {
	h := testHost(t)
	need(t, h, h.v1["freezer"], "freeze in version 1")
	h.taskBase = ""
	g := testGroup(t, h, "1", Limits{})
	if !g.Freezer() {
		t.Fatalf("task directory %s", g.TaskDir())
	}
	p := startIn(t, g, spin)
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
