package startd

import (
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu/nvml/fakelib"
	"github.com/roost-batch/roost/internal/wire"
)

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

// TestStartdWithGPUs runs a whole startd with GPUs. Its ad shows the devices and what
// they do. A task without a GPU sees none, and one that uses a GPU nevertheless is
// stopped.
func TestStartdWithGPUs(t *testing.T) {
	t.Parallel()
	p, m := newGPUStartd(t, fakelib.MachineDescription{Devices: []fakelib.FakeDevice{
		{UUID: "GPU-a", Model: "NVIDIA Test", Memory: 16 * roost.GiB, UsedMemory: roost.GiB, Celsius: 41},
	}})
	first := func(ad *classad.Ad) *classad.Ad {
		list, _ := ad.Eval("GpuDevices", nil).Elements(nil)
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
		driver, _ := ad.Str("GpuDriver")
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
