package startd

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
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/gpu/nvml/fakelib"
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/wire"
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

func newFakeGPUs(t *testing.T, own config.GPUSettings, devices ...gpu.Device) (*gpuMonitor, *fakeGPULister) {
	t.Helper()
	s := &fakeGPULister{devices: devices}
	c := newGPUMonitor(s, own, slog.New(slog.DiscardHandler), nil)
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
		for _, d := range c.listDevices() {
			got = append(got, d.UUID)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("use %v: got %v, want %s", tt.use, got, tt.want)
		}
	}
}

func TestGPUEnvironment(t *testing.T) {
	none, _ := newFakeGPUs(t, config.GPUSettings{})
	if got := none.environment(nil); got != nil {
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
		got := c.environment(tt.shares)
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
		nodes := c.deviceNodes(shares)
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
			c.addAttempt(7, tt.shares, os.Getpid(), func(reason string) { reasons = append(reasons, reason) })
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
			if _, memory, peak := c.attemptUsage(7); memory != 0 || (peak == 2*roost.GiB) != (tt.pid == pid) {
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
	c.addAttempt(1, []gpu.SavedShare{{UUID: "GPU-a"}}, os.Getpid(), nil)
	if got := c.gpuFault(1); got != "" {
		t.Errorf("before: %q", got)
	}
	c.onDriverEvent([]gpu.XIDEvent{{UUID: "GPU-b", XID: 79}}, boottime.Now())
	if got := c.gpuFault(1); got != "" || changes != 1 {
		t.Errorf("another device: %q, and %d changes", got, changes)
	}
	c.onDriverEvent([]gpu.XIDEvent{{UUID: "GPU-a", XID: 31}}, boottime.Now())
	if got := c.gpuFault(1); !strings.Contains(got, "GPU 0") || !strings.Contains(got, "XID 31") {
		t.Errorf("its own error: %q", got)
	}
	c.onDriverEvent([]gpu.XIDEvent{{UUID: "GPU-a", XID: 79}}, boottime.Now())
	if got := c.gpuFault(1); !strings.Contains(got, "sick") || changes != 2 {
		t.Errorf("a sick device: %q, and %d changes", got, changes)
	}
	for _, d := range c.listDevices() {
		if d.Health.OK {
			t.Errorf("%s is well", d.UUID)
		}
	}
}

// newGPUStartd is a place whose startd has the cards of a fake library.
func newGPUStartd(t *testing.T, d fakelib.MachineDescription) (*testStartd, *fakelib.FakeMachine) {
	t.Helper()
	m := fakelib.New(t, d)
	p := newTestStartd(t)
	p.stop()
	p.node.Startds[0].GPUs.Library = m.Library
	p.start()
	return p, m
}

// TestStartdWithGPUs goes through the whole startd: its ad shows the cards and what they
// do, a task without a GPU sees none, and one that takes a GPU nevertheless is stopped.
func TestStartdWithGPUs(t *testing.T) {
	t.Parallel()
	p, m := newGPUStartd(t, fakelib.MachineDescription{Devices: []fakelib.FakeDevice{
		{UUID: "GPU-a", Model: "NVIDIA Test", Memory: 16 * roost.GiB, UsedMemory: roost.GiB, Celsius: 41},
	}})
	first := func(ad *classad.Ad) *classad.Ad {
		list, _ := ad.Eval(attrDevices, nil).Elements(nil)
		if len(list) != 1 {
			return classad.New()
		}
		a, _ := list[0].Ad()
		return a
	}
	p.ads.awaitAd(t, "shows the card", func(_ *wire.AdUpdate, ad *classad.Ad) bool {
		a := first(ad)
		uuid, _ := a.Str("UUID")
		well, _ := a.Bool("Healthy")
		used, _ := a.Int("MemoryUsed")
		driver, _ := ad.Str(attrDriver)
		return uuid == "GPU-a" && well && used == 1024 && driver == "550.54.15"
	})
	s := p.connect("host1", 1)
	claim := s.claim()
	x := s.run(claim, s.shell(`echo "[$CUDA_VISIBLE_DEVICES] $NVIDIA_VISIBLE_DEVICES"`))
	if got, want := string(x.GetStdout()), "[] void\n"; got != want {
		t.Errorf("a task without GPUs sees %q, want %q", got, want)
	}
	a := s.activate(claim, s.shell("sleep 1000"), false)
	pid := s.awaitStarted(a).GetPid()
	m.Update(func(d *fakelib.MachineDescription) {
		d.Processes = []fakelib.DeviceProcess{{DeviceUUID: "GPU-a", PID: int(pid), Memory: roost.GiB}}
	})
	x = s.awaitOnlyExit(a)
	if st := x.GetStatus(); st.GetCause() != wire.Cause_CAUSE_GPU_MEMORY ||
		!strings.Contains(st.GetReason(), "was not given") {
		t.Errorf("a task that takes a GPU: %v", st)
	}
	m.Update(func(d *fakelib.MachineDescription) { d.XIDs = []fakelib.XIDEvent{{DeviceUUID: "GPU-a", Code: 79}} })
	p.ads.awaitAd(t, "says that the card is sick", func(_ *wire.AdUpdate, ad *classad.Ad) bool {
		well, ok := first(ad).Bool("Healthy")
		why, _ := first(ad).Str("Why")
		return ok && !well && strings.Contains(why, "XID 79")
	})
	reply := s.requestClaim(func(r *wire.ClaimRequest) {
		r.Resources = &wire.Resources{MilliCpu: 1000, Memory: 256 << 20, Gpus: 1}
	})
	if reply.GetClaim() != 0 || reply.GetReason() == "" {
		t.Errorf("a sick card is handed out: %v", reply)
	}
}
