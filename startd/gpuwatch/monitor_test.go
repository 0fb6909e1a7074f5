package gpuwatch

import (
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/config"
)

// fakeGPULister is an inventory of made-up cards.
type fakeGPULister struct {
	devices []gpu.Device
	usage   []gpu.DeviceUsage
}

func (s *fakeGPULister) Devices() ([]gpu.Device, error)          { return slices.Clone(s.devices), nil }
func (s *fakeGPULister) Usage() ([]gpu.DeviceUsage, error)       { return s.usage, nil }
func (s *fakeGPULister) Wait(limit time.Duration) []gpu.XIDEvent { return nil }
func (s *fakeGPULister) Driver() (driver, cuda string)           { return "550.54.15", "12.4" }
func (s *fakeGPULister) Close() error                            { return nil }
func testGPU(i int, uuid string) gpu.Device {
	return gpu.Device{UUID: uuid, Model: "NVIDIA Test", Index: i, Minor: i, Memory: 16 * roost.GiB, NUMANode: -1,
		Health: gpu.HealthyDevice()}
}

func newFakeGPUs(t *testing.T, own config.GPUSettings, devices ...gpu.Device) (*Monitor, *fakeGPULister) {
	t.Helper()
	s := &fakeGPULister{devices: devices}
	c := newMonitor(s, own, slog.New(slog.DiscardHandler), nil)
	c.refresh()
	return c, s
}

func TestUse(t *testing.T) {
	part := testGPU(2, "MIG-c")
	part.ParentUUID = "GPU-c"
	for _, tt := range []struct {
		use  []string
		want string
	}{
		{nil, "GPU-a GPU-b MIG-c"}, {[]string{"1"}, "GPU-b"}, {[]string{"GPU-a", "GPU-c"}, "GPU-a MIG-c"},
		{[]string{"7"}, ""},
	} {
		c, _ := newFakeGPUs(t, config.GPUSettings{Use: tt.use}, testGPU(0, "GPU-a"), testGPU(1, "GPU-b"), part)
		var got []string
		for _, d := range c.Devices() {
			got = append(got, d.UUID)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("use %v: got %v, want %s", tt.use, got, tt.want)
		}
	}
}

func TestGPUEnvironment(t *testing.T) {
	none, _ := newFakeGPUs(t, config.GPUSettings{})
	if got := none.Environment(nil); got != nil {
		t.Errorf("without GPUs: %q", got)
	}
	c, _ := newFakeGPUs(t, config.GPUSettings{}, testGPU(0, "GPU-a"), testGPU(1, "GPU-b"))
	tests := []struct {
		shares []gpu.SavedShare
		want   []string
	}{
		{nil, []string{"CUDA_VISIBLE_DEVICES=", "NVIDIA_VISIBLE_DEVICES=void", "ROOST_GPUS="}},
		{[]gpu.SavedShare{{UUID: "GPU-b", Memory: 16 * roost.GiB, Whole: true}},
			[]string{"CUDA_VISIBLE_DEVICES=GPU-b", "NVIDIA_VISIBLE_DEVICES=GPU-b", "CUDA_DEVICE_ORDER=PCI_BUS_ID",
				"ROOST_GPUS=GPU-b", "ROOST_GPU_MEMORY=16384"}},
		{[]gpu.SavedShare{{UUID: "GPU-b", Memory: roost.GiB}, {UUID: "GPU-a", Memory: roost.GiB}},
			[]string{"CUDA_VISIBLE_DEVICES=GPU-b,GPU-a", "ROOST_GPU_MEMORY=1024,1024",
				"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=1024M,1=1024M"}},
	}
	for _, tt := range tests {
		got := c.Environment(tt.shares)
		for _, w := range tt.want {
			if !slices.Contains(got, w) {
				t.Errorf("%v: got %q, want %s in it", tt.shares, got, w)
			}
		}
	}
}

// TestDeviceNodes has device files that look like NVIDIA's, with the numbers of null.
func TestDeviceNodes(t *testing.T) {
	c, _ := newFakeGPUs(t, config.GPUSettings{}, testGPU(0, "GPU-a"), testGPU(1, "GPU-b"), gpu.Device{UUID: "MIG-c",
		MIG: "1g.5gb", ParentUUID: "GPU-c", Minor: 2, Index: 2, Instance: 9, Health: gpu.HealthyDevice()})
	c.deviceDir, c.capabilityDir = t.TempDir(), t.TempDir()
	for i, name := range []string{"nvidia0", "nvidia1", "nvidia2", "nvidiactl", "nvidia-uvm",
		"nvidia-caps/nvidia-cap30", "nvidia-caps/nvidia-cap31", "nvidia-caps/nvidia-cap40"} {
		path := filepath.Join(c.deviceDir, name)
		os.MkdirAll(filepath.Dir(path), 0o755)
		if err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(1, uint32(200+i)))); errors.Is(err, unix.EPERM) {
			t.Skip("SKIP: device files can only be made by root")
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for name, minor := range map[string]string{"gpu2/mig/gi9/access": "30", "gpu2/mig/gi9/ci0/access": "31"} {
		path := filepath.Join(c.capabilityDir, name)
		os.MkdirAll(filepath.Dir(path), 0o755)
		if err := os.WriteFile(path, []byte("DeviceFileMinor: "+minor+"\nDeviceFileMode: 292\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		uuid string
		want string
	}{
		{"", ""}, {"GPU-a", "nvidia0 nvidiactl nvidia-uvm"}, {"GPU-b", "nvidia1 nvidiactl nvidia-uvm"},
		{"GPU-gone", ""},
		{"MIG-c", "nvidia2 nvidia-cap30 nvidia-cap31 nvidiactl nvidia-uvm"},
	}
	for _, tt := range tests {
		var shares []gpu.SavedShare
		if tt.uuid != "" {
			shares = append(shares, gpu.SavedShare{UUID: tt.uuid})
		}
		nodes := c.DeviceNodes(shares)
		var got []string
		for _, n := range nodes {
			got = append(got, filepath.Base(n.Path))
			if n.Major != 1 || n.Minor < 200 {
				t.Errorf("%s has numbers %d and %d", n.Path, n.Major, n.Minor)
			}
		}
		if nodes == nil || strings.Join(got, " ") != tt.want {
			t.Errorf("%q: got %v (nil %v), want %s", tt.uuid, got, nodes == nil, tt.want)
		}
	}
}

// TestOveruse measures a child of this test, which so takes the place of a starter.
func TestOveruse(t *testing.T) {
	child := exec.Command("sleep", "1000")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { child.Process.Kill(); child.Wait() }()
	pid := child.Process.Pid
	share := func(size roost.Bytes, whole bool) []gpu.SavedShare {
		return []gpu.SavedShare{{UUID: "GPU-b", Memory: size, Whole: whole}}
	}
	tests := []struct {
		name   string
		shares []gpu.SavedShare
		uuid   string
		pid    int
		want   []string
	}{
		{"within its share", share(3*roost.GiB, false), "GPU-b", pid, nil},
		{"more than its share", share(roost.GiB, false), "GPU-b", pid,
			[]string{"used 2GiB of GPU 1 (NVIDIA Test, GPU-b)", "asked for 1GiB", "(sleep)", "gpu_memory"}},
		{"a whole card", share(16*roost.GiB, true), "GPU-b", pid, nil},
		{"another's card", share(16*roost.GiB, true), "GPU-a",
			pid, []string{"GPU 0", "was not given", "CUDA_VISIBLE_DEVICES"}},
		{"a card, having asked for none", nil, "GPU-a", pid, []string{"was not given", "gpus = 1"}},
		{"somebody else's process", share(roost.GiB, false), "GPU-b", 1, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, s := newFakeGPUs(t, config.GPUSettings{}, testGPU(0, "GPU-a"), testGPU(1, "GPU-b"))
			s.usage = []gpu.DeviceUsage{{UUID: tt.uuid, BusyFraction: 0.5, Memory: 2 * roost.GiB,
				Processes: []gpu.DeviceProcess{{PID: tt.pid, Memory: 2 * roost.GiB, Busy: 0.5}}}}
			var reasons []string
			c.AddAttempt(7, tt.shares, os.Getpid(), func(reason string) { reasons = append(reasons, reason) })
			c.measure()
			c.measure()
			if (len(tt.want) > 0) != (len(reasons) == 1) {
				t.Fatalf("stopped for %q", reasons)
			}
			for _, w := range tt.want {
				if !strings.Contains(reasons[0], w) {
					t.Errorf("got %q, want %q in it", reasons[0], w)
				}
			}
			s.usage = nil
			c.measure()
			if _, memory, peak := c.AttemptUsage(7); memory != 0 || (peak == 2*roost.GiB) != (tt.pid == pid) {
				t.Errorf("used %v now and %v at most", memory, peak)
			}
		})
	}
}

// TestBlame: an attempt that failed is told of what its device reported while it ran, and
// of nothing else.
func TestBlame(t *testing.T) {
	c, _ := newFakeGPUs(t, config.GPUSettings{}, testGPU(0, "GPU-a"), testGPU(1, "GPU-b"))
	changes := 0
	c.changed = func() { changes++ }
	c.onDriverEvent([]gpu.XIDEvent{{UUID: "GPU-a", XID: 31}}, 0)
	c.AddAttempt(1, []gpu.SavedShare{{UUID: "GPU-a"}}, os.Getpid(), nil)
	if got := c.FailureReason(1); got != "" {
		t.Errorf("before: %q", got)
	}
	c.onDriverEvent([]gpu.XIDEvent{{UUID: "GPU-b", XID: 79}}, boottime.Now())
	if got := c.FailureReason(1); got != "" || changes != 1 {
		t.Errorf("another device: %q, and %d changes", got, changes)
	}
	c.onDriverEvent([]gpu.XIDEvent{{UUID: "GPU-a", XID: 31}}, boottime.Now())
	if got := c.FailureReason(1); !strings.Contains(got, "GPU 0") || !strings.Contains(got, "XID 31") {
		t.Errorf("its own error: %q", got)
	}
	c.onDriverEvent([]gpu.XIDEvent{{UUID: "GPU-a", XID: 79}}, boottime.Now())
	if got := c.FailureReason(1); !strings.Contains(got, "sick") || changes != 2 {
		t.Errorf("a sick device: %q, and %d changes", got, changes)
	}
	for _, d := range c.Devices() {
		if d.Health.OK {
			t.Errorf("%s is well", d.UUID)
		}
	}
}
