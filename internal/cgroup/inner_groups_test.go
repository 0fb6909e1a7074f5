package cgroup

import (
	"os"
	"syscall"
	"testing"

	"github.com/roost-batch/roost"
)

// TestInnerGroups checks that groups inside another are found again, and go with it.
func TestInnerGroups(t *testing.T) {
	h := testHost(t)
	skipUnless(t, h, h.Enforcement().Version > 0, "anything")
	limits := GroupLimits{Weight: 100, Memory: 64 * roost.MiB, InnerGroups: 2}
	outer := testGroup(t, h, "7", limits)
	inner := testGroup(t, h.Inside("7"), "8", GroupLimits{Weight: 100, Memory: 32 * roost.MiB, Pids: 10})
	if found, ok := h.Inside("7").FindGroup("8"); !ok || found.TaskDir() != inner.TaskDir() {
		t.Errorf("the inner group is found: %v", ok)
	}
	if _, ok := h.FindGroup("8"); ok {
		t.Error("the inner group stands beside the outer one")
	}
	lost := testGroup(t, h.Inside("7"), "9", GroupLimits{})
	stays, swept := startIn(t, inner, "exec sleep 1000"), startIn(t, lost, "exec sleep 1000")
	stays.release(t)
	swept.release(t)
	if err := h.Sweep(map[string]bool{"7": true, "8": true}); err != nil {
		t.Fatal(err)
	}
	if swept.Wait(); !swept.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
		t.Errorf("swept: %v", swept.ProcessState)
	}
	if err := stays.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the one that is wanted: %v", err)
	}
	if err := outer.Delete(); err != nil {
		t.Fatal(err)
	}
	if stays.Wait(); !stays.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
		t.Errorf("with its outer group: %v", stays.ProcessState)
	}
	for _, dir := range inner.allDirs() {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is left", dir)
		}
	}
}

// TestInnerMemory has the outer group end what takes more than all inside may have.
func TestInnerMemory(t *testing.T) {
	h := testHost(t)
	skipUnless(t, h, h.Enforcement().Memory, "memory")
	testGroup(t, h, "7", GroupLimits{Memory: 16 * roost.MiB})
	inner := testGroup(t, h.Inside("7"), "8", GroupLimits{})
	p := startIn(t, inner, "exec head -c 200M /dev/zero | tail")
	if status := p.run(t); !status.Signaled() && status.ExitStatus() == 0 {
		t.Errorf("it had more than its outer group: %v", status)
	}
}
