package gpu

import (
	"math/rand/v2"
	"testing"

	"github.com/roost-batch/roost"
)

// unusableFor returns how much of a machine's idle cards one request cannot use, by the
// paper's definition. It is all of them if the machine cannot hold the request, else the
// cards on which too little is left.
func unusableFor(f *FreeResources, n MixRequest) (lost int64) {
	var reclaimable roost.Resources
	most := roost.MilliCPU(0)
	for _, u := range f.units {
		if !u.usesCPUOfOthers() && (len(u.Devices) == 0 || !f.cpuOnly) && u.cpu[BatchClass] >= most {
			most, reclaimable = u.cpu[BatchClass], roost.Resources{CPU: u.cpu[n.Class], Memory: u.memory}
		}
	}
	fit, out, all := 0, int64(0), int64(0)
	for _, d := range f.devices {
		parts := int64(float64(d.Free) / float64(d.Memory) * SharesPerGPU)
		if !d.Health.OK || parts == 0 {
			continue
		}
		u, of := f.units[d.Unit], roost.Bytes(1)
		beside := reclaimable
		if !u.usesCPUOfOthers() {
			beside, of = roost.Resources{CPU: u.cpu[n.Class], Memory: u.memory}, roost.Bytes(n.GPUs)
		}
		all += parts
		if n.CPU/roost.MilliCPU(of) > beside.CPU || n.Memory/of > beside.Memory || n.GPUMemory > d.Free ||
			n.GPUMemory == 0 && d.Tasks > 0 {
			out += parts
		} else {
			fit++
		}
	}
	if fit < n.GPUs {
		return all
	}
	return out
}

// TestFragmentation compares the meter with the definition, on machines of all layouts,
// before and after a placement.
func TestFragmentation(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 3))
		topology, layout := smallMachines(r)
		units, err := CutUnits(topology, layout)
		if err != nil {
			continue
		}
		f := NewFree(units, 100*roost.GiB)
		var needs []MixRequest
		for range r.IntN(6) {
			if n := (MixRequest{randomRequest(r), 1 + r.IntN(200)}); n.GPUs > 0 {
				needs = append(needs, n)
			}
		}
		mix, set := NewMix(needs), r.Uint64()
		want := func() (sum, idle int64) {
			for _, d := range f.devices {
				if d.Health.OK {
					idle += int64(float64(d.Free) / float64(d.Memory) * SharesPerGPU)
				}
			}
			sum = idle * MixWeight
			for i, n := range needs {
				if set>>i&1 == 1 {
					sum -= (idle - unusableFor(f, n)) * int64(n.Weight)
				}
			}
			return sum, idle
		}
		var g FragmentationMeter
		for range 10 {
			if n := len(f.devices); n > 0 && r.IntN(8) == 0 {
				f.SetHealth(f.devices[r.IntN(n)].UUID, Unhealthy("hot"))
			}
			p, err := f.PlaceOrExplain(randomRequest(r))
			if err != nil {
				continue
			}
			lost, idle := g.MeasureUnits(f, mix, set, &p)
			f.TakePlacement(p)
			again, same := g.MeasureUnits(f, mix, set, nil)
			if sum, all := want(); lost != sum || again != sum || idle != all || same != all {
				t.Fatalf("seed %d: %d of %d lost, %d of %d once it is taken, want %d of %d\n%+v\n%+v", seed, lost, idle,
					again, same, sum, all, needs, f)
			}
		}
	}
}

// TestFragmentationOfSums checks that a machine with sums is as fragmented as one with
// units and the same resources.
func TestFragmentationOfSums(t *testing.T) {
	f := cutMachine(t, testMachine(8, 4), LayoutConfig{})
	mix := NewMix([]MixRequest{{deviceRequest(4, roost.GiB, 1, 0), 500}, {deviceRequest(9, roost.GiB, 1, 0), 300},
		{deviceRequest(1, roost.GiB, 4, 0), 224}})
	var g FragmentationMeter
	for _, q := range []DeviceRequest{deviceRequest(5, roost.GiB, 1, 0), deviceRequest(1, roost.GiB, 2, 0)} {
		p, err := f.PlaceOrExplain(q)
		if err != nil {
			t.Fatal(err)
		}
		f.TakePlacement(p)
		lost, idle := g.MeasureUnits(f, mix, AllNeeds, nil)
		if sum, all := g.MeasureSums(f.LeftForBatch(), mix, AllNeeds); lost != sum || idle != all {
			t.Errorf("%d of %d lost, and by the sums %d of %d", lost, idle, sum, all)
		}
	}
}
