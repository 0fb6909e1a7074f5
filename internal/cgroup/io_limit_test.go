package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
)

// TestLimitIO writes around the page cache, and reads so, and measures how long it takes.
func TestLimitIO(t *testing.T) {
	h := testHost(t)
	skipUnless(t, h, h.Enforcement().IOLimits, "limits of disk I/O")
	dir := t.TempDir()
	disk, err := BlockDeviceOf(dir)
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	g := testGroup(t, h, "1", GroupLimits{})
	if err := g.LimitIO(disk, 4<<20); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "data")
	if f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|unix.O_DIRECT, 0o600); err != nil {
		t.Skipf("SKIPPED: the file system has no direct I/O: %v", err)
	} else {
		f.Close()
	}
	for _, script := range []string{
		"dd if=/dev/zero of=" + file + " bs=1M count=8 oflag=direct conv=notrunc 2>/dev/null",
		"dd if=" + file + " of=/dev/null bs=1M count=8 iflag=direct 2>/dev/null"} {
		p := startIn(t, g, script)
		began := time.Now()
		if code := p.run(t).ExitStatus(); code != 0 {
			t.Fatalf("%s: exit status %d", script, code)
		}
		// the kernel lets the first slice through at once
		if took := time.Since(began); took < time.Second {
			t.Errorf("%s: 8 MiB at 4 MiB/s took %v", script, took)
		}
	}
}

// TestBlockDevice: a directory in memory is on no disk, and its claims go without limits.
func TestBlockDevice(t *testing.T) {
	if _, err := BlockDeviceOf("/proc/self"); !errors.Is(err, roost.Unavailable) {
		t.Errorf("got %v", err)
	}
	if err := (&ClaimGroup{host: &ParentGroup{}}).LimitIO(BlockDevice{}, 1); !errors.Is(err, roost.Unavailable) {
		t.Errorf("got %v", err)
	}
	if err := (&ClaimGroup{host: &ParentGroup{}}).LimitIO(BlockDevice{8, 0}, 1); !errors.Is(err, roost.Unavailable) {
		t.Errorf("got %v", err)
	}
}

// TestSoftMemory: beyond the request the kernel takes memory back first.
func TestSoftMemory(t *testing.T) {
	h := testHost(t)
	skipUnless(t, h, h.Enforcement().Memory, "memory")
	g := testGroup(t, h, "1", GroupLimits{Memory: 96 * roost.MiB, SoftMemory: 64 * roost.MiB})
	if got := g.memoryLimit(); got != 96*roost.MiB {
		t.Errorf("the limit is %v", got)
	}
	if h.Enforcement().Version != 1 {
		return
	}
	if got := g.readSingle(filepath.Join(g.version1Dir("memory"), "memory.soft_limit_in_bytes")); roost.Bytes(got) !=
		64*roost.MiB+starterMemory {
		t.Errorf("the soft limit is %d", got)
	}
}
