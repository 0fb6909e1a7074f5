package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/cgroups/v3/cgroup2"

	"github.com/roost-batch/roost"
)

func TestMemory(t *testing.T) {
	h := testHost(t)
	skipUnless(t, h, h.Enforcement().Memory, "memory")
	g := testGroup(t, h, "1", GroupLimits{Memory: 32 * roost.MiB})
	p := startIn(t, g, "exec tail /dev/zero") // it searches the end of an endless line
	if status := p.run(t); status.Signal() != syscall.SIGKILL {
		t.Fatalf("got %v, want SIGKILL", p.ProcessState)
	}
	o, err := g.OOM()
	if err != nil || o.Kills != 1 || o.MemoryLimit != 32*roost.MiB {
		t.Errorf("got %+v, %v", o, err)
	}
	if !CanReadKernelLog() {
		t.Skip("SKIPPED: the kernel's log cannot be read here, so that nobody knows which process was killed")
	}
	if o.Process != "tail" || o.PID != p.Process.Pid || o.ProcessRSS < 16*roost.MiB {
		t.Errorf("got %+v, want tail, %d", o, p.Process.Pid)
	}
}

// TestPageCache checks that a task which writes far more than its memory into files is
// not killed for that.
func TestPageCache(t *testing.T) {
	h := testHost(t)
	skipUnless(t, h, h.Enforcement().Memory, "memory")
	g := testGroup(t, h, "1", GroupLimits{Memory: 32 * roost.MiB})
	file := filepath.Join(t.TempDir(), "big")
	p := startIn(t, g, "dd if=/dev/zero of="+file+" bs=1M count=160 2>/dev/null; cat "+file+" >/dev/null")
	if status := p.run(t); !status.Exited() || status.ExitStatus() != 0 {
		t.Fatalf("got %v", p.ProcessState)
	}
	u, err := g.Usage()
	if err != nil {
		t.Fatal(err)
	}
	if o, _ := g.OOM(); o.Kills != 0 || u.Memory > 8*roost.MiB {
		t.Errorf("%+v, %+v", o, u)
	}
	var fs syscall.Statfs_t
	// TMPFS_MAGIC: its files are memory
	if syscall.Statfs(filepath.Dir(file), &fs); fs.Type != 0x01021994 && u.Cache < roost.MiB {
		t.Errorf("cache: got %v of a file of 160MiB", u.Cache)
	}
}

func TestForkBomb(t *testing.T) {
	h := testHost(t)
	skipUnless(t, h, h.Enforcement().Pids, "pids")
	g := testGroup(t, h, "1", GroupLimits{Pids: 20, Weight: 10})
	p := startIn(t, g, "while :; do sleep 1000 & done") // the processes stay, so a late count is right, too
	p.release(t)
	most := 0
	waitUntil(t, "the limit is reached", func() bool {
		u, _ := g.Usage()
		most = max(most, u.Processes)
		return most > 20
	})
	if most > 20+starterPids {
		t.Errorf("%d processes, want at most %d", most, 20+starterPids)
	}
	if err := g.Delete(); err != nil {
		t.Error(err)
	}
}

func TestDevices(t *testing.T) {
	h := testHost(t)
	skipUnless(t, h, h.Enforcement().Devices, "devices")
	g := testGroup(t, h, "1", GroupLimits{Devices: []DeviceNode{}})
	p := startIn(t, g,
		"set -e; head -c 1 /dev/zero >/dev/null; head -c 1 /dev/urandom >/dev/null; ! head -c 1 /dev/kmsg 2>/dev/null")
	if status := p.run(t); status.ExitStatus() != 0 {
		t.Errorf("got %v: a harmless device was denied, or /dev/kmsg was not", p.ProcessState)
	}
	g = testGroup(t, h, "2", GroupLimits{Devices: []DeviceNode{{"/dev/kmsg", 1, 11}}})
	if p := startIn(t, g, "exec 3</dev/kmsg"); p.run(t).ExitStatus() != 0 {
		t.Errorf("got %v: a device that is allowed was denied", p.ProcessState)
	}
}

// TestLaterLimits checks limits that a group gets after it was made. They hold for
// processes that enter it before and afterwards.
func TestLaterLimits(t *testing.T) {
	h := testHost(t)
	skipUnless(t, h, h.Enforcement().Devices && h.Enforcement().Memory, "devices and memory")
	g := testGroup(t, h, "1", GroupLimits{})
	before := startIn(t, g, "! head -c 1 /dev/kmsg 2>/dev/null")
	if err := g.SetLimits(GroupLimits{Weight: 100, Memory: 64 * roost.MiB, Pids: 50}); err != nil {
		t.Fatal(err)
	}
	if err := g.RestrictDevices([]DeviceNode{}); err != nil {
		t.Fatal(err)
	}
	for _, p := range []*testProcess{before, startIn(t, g, "! head -c 1 /dev/kmsg 2>/dev/null")} {
		if p.run(t).ExitStatus() != 0 {
			t.Errorf("got %v: /dev/kmsg was not denied", p.ProcessState)
		}
	}
	if got := g.memoryLimit(); got != 64*roost.MiB {
		t.Errorf("the limit of memory is %v", got)
	}
}

// TestDeviceProgram checks that in version 2 the device rules become a BPF program, on
// any machine.
func TestDeviceProgram(t *testing.T) {
	l := GroupLimits{Devices: []DeviceNode{{"/dev/nvidia0", 195, 0}}}
	if _, _, err := cgroup2.DeviceFilter(l.devices()); err != nil {
		t.Error(err)
	}
}

func TestCpuset(t *testing.T) {
	h := testHost(t)
	skipUnless(t, h, h.Enforcement().Cpuset, "cpuset")
	g := testGroup(t, h, "1", GroupLimits{Cores: []int{0}})
	p := startIn(t, g, "true")
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
	if err != nil || !strings.Contains(string(text), "Cpus_allowed_list:\t0\n") {
		t.Errorf("%v, %s", err, text)
	}
}

// spinScript uses all CPU time that it gets.
const spinScript = "while :; do :; done"

func TestQuota(t *testing.T) {
	h := testHost(t)
	skipUnless(t, h, h.Enforcement().CPU, "cpu")
	g := testGroup(t, h, "1", GroupLimits{Quota: 200})
	p := startIn(t, g, spinScript)
	began := time.Now()
	p.release(t)
	var used time.Duration
	waitUntil(t, "it has run", func() bool {
		u, _ := g.Usage()
		used = u.UserCPU + u.SystemCPU
		return used > 120*time.Millisecond
	})
	if share := float64(used) / float64(time.Since(began)); share > 0.5 {
		t.Errorf("with a quota of 0.2 cores: used %.2f", share)
	}
}

func TestWeight(t *testing.T) {
	h := testHost(t)
	skipUnless(t, h, h.Enforcement().CPU && h.Enforcement().Cpuset, "cpu")
	light := testGroup(t, h, "1", GroupLimits{Weight: 20, Cores: []int{0}})
	heavy := testGroup(t, h, "2", GroupLimits{Weight: 1000, Cores: []int{0}})
	for _, g := range []*ClaimGroup{light, heavy} {
		startIn(t, g, spinScript).release(t)
	}
	var l, v GroupUsage
	waitUntil(t, "both have run", func() bool {
		l, _ = light.Usage()
		v, _ = heavy.Usage()
		return v.UserCPU > 300*time.Millisecond && l.UserCPU > 0
	})
	if ratio := float64(v.UserCPU) / float64(l.UserCPU); ratio < 5 {
		t.Errorf("weights as 50:1 gave CPU time as %.1f:1", ratio)
	}
	if err := light.SetLimits(GroupLimits{Weight: 1000}); err != nil {
		t.Error(err)
	}
}

func TestShares(t *testing.T) {
	for _, c := range []struct {
		weight int
		want   uint64
	}{{0, 10}, {1, 10}, {100, 1024}, {10_000, 102_400}, {1 << 30, 102_400}} {
		if got := (GroupLimits{Weight: c.weight}).shares(); got != c.want {
			t.Errorf("weight %d: got %d shares, want %d", c.weight, got, c.want)
		}
	}
}
