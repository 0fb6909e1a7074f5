package match

import (
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// TestPendingGrantsTogether checks that pending grants are subtracted one after the
// other, each where the earlier ones have left room. The second of two that ask for a GPU
// gets the other GPU. A grant that no longer fits, because the machine's ad shows some of
// them already, takes nothing.
func TestPendingGrantsTogether(t *testing.T) {
	units, err := gpu.CutUnits(gpu.MachineTopology{
		CPU: 4000, Memory: 8 * roost.GiB, Cores: make([]gpu.CPUCore, 4),
		Devices: []gpu.Device{{UUID: "GPU-0", Memory: 8 * roost.GiB, Health: gpu.HealthyDevice()},
			{UUID: "GPU-1", Memory: 8 * roost.GiB, Health: gpu.HealthyDevice()}},
	}, gpu.LayoutConfig{Shape: gpu.SharedLayout})
	if err != nil {
		t.Fatal(err)
	}
	for pendingCount, free := range []roost.Resources{{CPU: 4000, GPUs: 2}, {CPU: 3000, GPUs: 1}, {CPU: 2000},
		{CPU: 2000}, {CPU: 2000}} {
		f := gpu.NewFree(units, 0)
		ad := machineAd(t, "m", f.Total(), f.LeftForBatch(), "")
		f.Describe(ad)
		s := &Snapshot{Machines: []*Machine{NewMachine("m", 1, 1, ad)}, Pending: map[string][]PendingGrant{}}
		for range pendingCount {
			s.Pending["m"] = append(s.Pending["m"], PendingGrant{Resources: roost.Resources{CPU: 1000, GPUs: 1}})
		}
		matcher := NewMatcher()
		matcher.Plan(s)
		if got := matcher.free[0]; got.CPU != free.CPU || got.GPUs != free.GPUs {
			t.Errorf("with %d promised, %v is free, want %v", pendingCount, got, free)
		}
	}
}
