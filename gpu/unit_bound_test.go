package gpu

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/roost-batch/roost"
)

func TestBounds(t *testing.T) {
	two, four := ResourceUnit{CPU: 2000, Memory: 4 * roost.GiB}, ResourceUnit{CPU: 4000, Memory: 8 * roost.GiB}
	deviceUnit := ResourceUnit{Devices: []Device{{UUID: "GPU-0", Health: HealthyDevice()}}}
	for _, c := range []struct {
		units  []ResourceUnit
		cpu    roost.MilliCPU
		memory roost.Bytes
		want   []UnitBound
	}{
		{[]ResourceUnit{four}, 0, 0, []UnitBound{{4000, 8 * roost.GiB}}},
		{[]ResourceUnit{four}, 2500, 3 * roost.GiB, []UnitBound{{2500, 3 * roost.GiB}}},
		{[]ResourceUnit{four}, 64000, 64 * roost.GiB, []UnitBound{{4000, 8 * roost.GiB}}},
		{[]ResourceUnit{four, deviceUnit}, 1000, 0, []UnitBound{{1000, 8 * roost.GiB}, {}}},
		{[]ResourceUnit{four, four}, 6000, 0, []UnitBound{{3000, 8 * roost.GiB}, {3000, 8 * roost.GiB}}},
		{[]ResourceUnit{four, four}, 5000, 10 * roost.GiB, []UnitBound{{3000, 6 * roost.GiB}, {2000, 4 * roost.GiB}}},
		{[]ResourceUnit{two, two, two, two}, 1000, 3 * roost.GiB, []UnitBound{{1000, 3 * roost.GiB}, {}, {}, {}}},
		{[]ResourceUnit{two, two}, 0, 2 * roost.GiB, []UnitBound{{2000, roost.GiB}, {2000, roost.GiB}}},
	} {
		if got := UnitBounds(c.units, c.cpu, c.memory); !reflect.DeepEqual(got, c.want) {
			t.Errorf("of %v, %v and %v: got %+v, want %+v", c.units, c.cpu, c.memory, got, c.want)
		}
	}
}

// TestBoundsAtRandom checks that the whole limit is divided, and that no unit gets more
// than it has.
func TestBoundsAtRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		var units []ResourceUnit
		var all, sum UnitBound
		for range 1 + r.IntN(6) {
			u := ResourceUnit{CPU: roost.MilliCPU(r.IntN(5) * 1000), Memory: roost.Bytes(r.IntN(9)) * roost.GiB}
			all.CPU, all.Memory = all.CPU+u.CPU, all.Memory+u.Memory
			units = append(units, u)
		}
		want := UnitBound{roost.MilliCPU(1 + r.IntN(30000)), roost.Bytes(1 + r.Int64N(int64(50*roost.GiB)))}
		got := UnitBounds(units, want.CPU, want.Memory)
		for i, b := range got {
			if b.CPU < 0 || b.Memory < 0 || b.CPU > units[i].CPU || b.Memory > units[i].Memory {
				t.Fatalf("unit %d of %+v may give %+v", i, units, b)
			}
			sum.CPU, sum.Memory = sum.CPU+b.CPU, sum.Memory+b.Memory
		}
		if want = (UnitBound{min(want.CPU, all.CPU), min(want.Memory, all.Memory)}); sum != want {
			t.Fatalf("%+v may give %+v together, want %+v", units, sum, want)
		}
	}
}
