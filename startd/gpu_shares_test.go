package startd

import (
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/gpu/nvml/fakelib"
	"github.com/roost-batch/roost/internal/wire"
)

// TestTasksShareACard runs three tasks of 5 GiB on a GPU of 16 GiB at the same time. Each
// learns the size of its share. A fourth is refused with what is left, and so is one that
// wants the GPU for itself. A restart preserves the shares. When the GPU is unhealthy,
// the tasks that have it go on.
func TestTasksShareACard(t *testing.T) {
	t.Parallel()
	p, m := newGPUStartd(t, fakelib.MachineDescription{
		Devices: []fakelib.FakeDevice{{UUID: "GPU-a", Model: "NVIDIA Test", Memory: 16 * roost.GiB}},
	})
	s := p.connect("host1", 1)
	want := func(cpu roost.MilliCPU, share roost.Bytes) func(*wire.ClaimRequest) {
		return func(r *wire.ClaimRequest) {
			r.Resources = wire.FromResources(roost.Resources{CPU: cpu, Memory: 256 * roost.MiB, GPUs: 1,
				GPUMemory: share})
		}
	}
	var running []*wire.AttemptRef
	for range 3 {
		reply := s.requestClaim(want(1000, 5*roost.GiB))
		gpus := reply.GetPlaced().GetGpus()
		if len(gpus) != 1 || gpus[0].GetUuid() != "GPU-a" || gpus[0].GetMemory() != int64(5*roost.GiB) ||
			gpus[0].GetWhole() {
			t.Fatalf("placed on %v: %s", reply.GetPlaced(), reply.GetReason())
		}
		a := s.activate(reply.GetClaim(),
			s.shell(`[ "$CUDA_VISIBLE_DEVICES $ROOST_GPU_MEMORY" = "GPU-a 5120" ] || exit 3; exec sleep 1000`), false)
		s.awaitStarted(a)
		running = append(running, a)
	}
	refused := func(share roost.Bytes, words string) {
		t.Helper()
		if reply := s.requestClaim(want(500, share)); reply.GetClaim() != 0 ||
			!strings.Contains(reply.GetReason(), words) {
			t.Errorf("got claim %d, %q; want a refusal with %q", reply.GetClaim(), reply.GetReason(), words)
		}
	}
	refused(5*roost.GiB, "no GPU has 5GiB free: the most is 1GiB")
	refused(0, "only 0 of 1 gpus are free")
	refused(20*roost.GiB, "no GPU has 20GiB: the largest has 16GiB")
	p.kill()
	p.start()
	s = p.connect("host1", 2)
	for _, c := range s.welcome.GetClaims() {
		if gpus := c.GetPlaced().GetGpus(); !c.GetRunning() || len(gpus) != 1 ||
			gpus[0].GetMemory() != int64(5*roost.GiB) {
			t.Errorf("after a restart: %v", c)
		}
	}
	s.grant = 100
	refused(5*roost.GiB, "no GPU has 5GiB free: the most is 1GiB")
	m.Update(func(d *fakelib.MachineDescription) { d.XIDs = []fakelib.XIDEvent{{DeviceUUID: "GPU-a", Code: 79}} })
	p.ads.awaitAd(t, "says that the card is handed out no more", func(_ *wire.AdUpdate, ad *classad.Ad) bool {
		f, err := gpu.ReadAd(ad)
		return err == nil && len(f.Devices()) == 1 && !f.Devices()[0].Health.OK && f.Devices()[0].Tasks == 3
	})
	refused(roost.GiB, "its GPU is not well: ")
	for _, a := range running {
		s.vacate(a, true)
		if x := s.awaitOnlyExit(a); x.GetStatus().GetCause() != wire.Cause_CAUSE_REMOVED {
			t.Errorf("a task of the sick card: %v", exitText(x))
		}
	}
}
