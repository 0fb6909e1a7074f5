package startd

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu/nvml/fakelib"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/claim"
)

// TestShares has three tasks on one card. Each knows its part; the sum of the parts is
// never more than the card; and the one that takes more than its part is stopped, with a
// sentence, while the others run on.
func TestShares(t *testing.T) {
	t.Parallel()
	p, m := newGPUStartd(t, fakelib.MachineDescription{
		Devices: []fakelib.FakeDevice{{UUID: "GPU-a", Model: "NVIDIA Test", Memory: 16 * roost.GiB}},
	})
	s := p.connect("host1", 1)
	ask := func(memory roost.Bytes) *wire.ClaimReply {
		return s.requestClaim(func(r *wire.ClaimRequest) {
			r.Resources = &wire.Resources{MilliCpu: 1000, Memory: 256 << 20, Gpus: 1, GpuMemory: int64(memory)}
		})
	}
	var claims []uint64
	for range 3 {
		reply := ask(5 * roost.GiB)
		if g := reply.GetPlaced().GetGpus(); reply.GetClaim() == 0 || len(g) != 1 || g[0].GetUuid() != "GPU-a" ||
			g[0].GetWhole() {
			t.Fatalf("no share: %v", reply)
		}
		claims = append(claims, reply.GetClaim())
	}
	for _, memory := range []roost.Bytes{2 * roost.GiB, 0} {
		if reply := ask(memory); reply.GetClaim() != 0 || reply.GetReason() == "" {
			t.Errorf("a fourth share of %v: %v", memory, reply)
		}
	}
	x := s.run(claims[0], s.shell("echo $CUDA_VISIBLE_DEVICES $ROOST_GPU_MEMORY $CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"))
	if got, want := string(x.GetStdout()), "GPU-a 5120 0=5120M\n"; got != want {
		t.Errorf("a task with a share sees %q, want %q", got, want)
	}
	good := s.activate(claims[0], s.shell("sleep 1000"), false)
	goodPID := s.awaitStarted(good).GetPid()
	greedy := s.activate(claims[1], s.shell("sleep 1000 & wait"), false)
	greedyPID := s.awaitStarted(greedy).GetPid()
	m.Update(func(d *fakelib.MachineDescription) {
		d.Processes = []fakelib.DeviceProcess{
			{DeviceUUID: "GPU-a", PID: int(goodPID), Memory: 5 * roost.GiB, Busy: 40},
			{DeviceUUID: "GPU-a", PID: int(greedyPID), Memory: 6 * roost.GiB, Busy: 20},
		}
	})
	x = s.awaitOnlyExit(greedy)
	st := x.GetStatus()
	for _, want := range []string{"6GiB", "5GiB", "GPU 0", fmt.Sprint(greedyPID), "gpu_memory"} {
		if st.GetCause() != wire.Cause_CAUSE_GPU_MEMORY || !strings.Contains(st.GetReason(), want) {
			t.Errorf("the greedy task: %v, want %s in it", st, want)
		}
	}
	s.acknowledge(greedy)
	s.vacate(good, true)
	u := s.awaitOnlyExit(good).GetStatus().GetUsage()
	if u.GetPeakGpuMemory() != int64(5*roost.GiB) {
		t.Errorf("the good task used %v", u)
	}
}

// TestOwnDevicesOnly has two cards whose device files exist, of numbers that no driver
// has. A task has the file of its card in its box and no other's, and none without a
// card; and it cannot make itself another's.
func TestOwnDevicesOnly(t *testing.T) {
	const first = 250 // far above the cards that a machine may have
	for i := range 2 {
		path := fmt.Sprintf("/dev/nvidia%d", first+i)
		if err := unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(1, uint32(first+i)))); err != nil {
			t.Skipf("SKIP: %s cannot be made, only root can: %v", path, err)
		}
		t.Cleanup(func() { os.Remove(path) })
	}
	if err := claim.TrySandbox(); err != nil {
		t.Skipf("SKIP: no sandbox here: %v", err)
	}
	p, _ := newGPUStartd(t, fakelib.MachineDescription{Devices: []fakelib.FakeDevice{
		{UUID: "GPU-a", PCI: "00000000:01:00.0", Minor: first, Memory: roost.GiB},
		{UUID: "GPU-b", PCI: "00000000:02:00.0", Minor: first + 1, Memory: roost.GiB},
	}})
	s := p.connect("host1", 1)
	const attack = `cd /dev; for f in nvidia*; do test -c $f && (exec 3<$f) 2>&1 | grep -q "not permitted" || echo $f; done
for n in 250 251; do test ! -e nvidia$n && mknod /tmp/attack$n c 1 $n 2>/dev/null && ! (exec 3</tmp/attack$n) 2>&1 | grep -qi "not permitted\|permission denied" && echo broke out with $n; rm -f /tmp/attack$n; done; true`
	for _, gpus := range []int64{1, 1, 0} {
		reply := s.requestClaim(func(r *wire.ClaimRequest) {
			r.Resources = &wire.Resources{MilliCpu: 1000, Memory: 256 << 20, Gpus: gpus}
		})
		want := "nvidia*\n"
		if g := reply.GetPlaced().GetGpus(); len(g) == 1 {
			want = map[string]string{"GPU-a": "nvidia250\n", "GPU-b": "nvidia251\n"}[g[0].GetUuid()]
		}
		x := s.run(reply.GetClaim(), s.shell(attack))
		if got := string(x.GetStdout()); got != want || gpus == 1 && !strings.HasPrefix(got, "nvidia2") {
			t.Errorf("a task with %d GPUs can open %q, want %q (%v)", gpus, got, want, x.GetStatus())
		}
	}
}
