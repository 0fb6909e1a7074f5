package gpu

import (
	"math/rand/v2"
	"testing"

	"github.com/roost-batch/roost"
)

// TestExclusive checks that an idle machine of any layout can be allocated as a whole.
// Afterwards nothing is left, and any allocated part prevents it.
func TestExclusive(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 4))
		units := []ResourceUnit{{Name: "cpu", NUMA: -1, CPU: 4000, Memory: 8 * roost.GiB}}
		for i := range rng.IntN(3) {
			u := ResourceUnit{Name: "gpu", NUMA: -1, Devices: []Device{{UUID: string(rune('a' + i)), Index: i,
				Memory: 16 * roost.GiB, NUMANode: -1, Health: HealthyDevice()}}}
			if rng.IntN(2) == 0 {
				u.CPU, u.Memory = 2000, 4*roost.GiB
			}
			units = append(units, u)
		}
		f := NewFree(units, roost.GiB)
		f.SetReclaim(rng.IntN(2) == 0)
		all, ok := f.WholeMachine()
		if !ok || !f.IsIdle() {
			t.Fatalf("seed %d: an empty machine cannot be taken", seed)
		}
		f.TakePlacement(all)
		left := f.LeftForBatch()
		if left.CPU != 0 || left.Memory != 0 || left.GPUs != 0 || left.Disk != 0 {
			t.Fatalf("seed %d: %v is left of a machine that was taken whole", seed, left)
		}
		if _, ok := f.WholeMachine(); ok {
			t.Fatalf("seed %d: it can be taken twice", seed)
		}
		f.ReturnPlacement(all)
		if !f.HasSameFree(NewFree(units, roost.GiB)) {
			t.Fatalf("seed %d: not all came back", seed)
		}
		small := DeviceRequest{Resources: roost.Resources{CPU: 1, Memory: 1}, Class: AppClass(rng.IntN(2)),
			MayReclaim: rng.IntN(2) == 0}
		p, err := f.PlaceOrExplain(small)
		if err != nil {
			t.Fatal(err)
		}
		if f.TakePlacement(p); f.IsIdle() {
			t.Fatalf("seed %d: %+v was taken, and the machine counts as empty", seed, p)
		}
	}
}
