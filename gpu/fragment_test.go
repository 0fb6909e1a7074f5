package gpu

import (
	"math/rand/v2"
	"testing"

	"github.com/roost-batch/roost"
)

// lostTo is what one need loses of a machine's idle cards, by the paper's words: all of them where the machine cannot hold it, or else those that
// have too little left for it.
func lostTo(f *Free, n Need) (lost int64) {
	var lent roost.Resources
	most := roost.MilliCPU(0)
	for _, u := range f.units {
		if !u.borrows() && (len(u.Devices) == 0 || !f.cpuOnly) && u.cpu[Batch] >= most {
			most, lent = u.cpu[Batch], roost.Resources{CPU: u.cpu[n.Class], Memory: u.memory}
		}
	}
	fit, out, all := 0, int64(0), int64(0)
	for _, d := range f.devices {
		parts := int64(float64(d.Free) / float64(d.Memory) * CardParts)
		if !d.Health.OK || parts == 0 {
			continue
		}
		u, of := f.units[d.Unit], roost.Bytes(1)
		beside := lent
		if !u.borrows() {
			beside, of = roost.Resources{CPU: u.cpu[n.Class], Memory: u.memory}, roost.Bytes(n.GPUs)
		}
		all += parts
		if n.CPU/roost.MilliCPU(of) > beside.CPU || n.Memory/of > beside.Memory || n.GPUMemory > d.Free || n.GPUMemory == 0 && d.Tasks > 0 {
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

// TestFragments holds the gauge against the definition, on machines of all layouts, before and after a placement.
func TestFragments(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 3))
		topology, layout := shapes(r)
		units, err := Cut(topology, layout)
		if err != nil {
			continue
		}
		f := NewFree(units, 100*roost.GiB)
		var needs []Need
		for range r.IntN(6) {
			if n := (Need{randomRequest(r), 1 + r.IntN(200)}); n.GPUs > 0 {
				needs = append(needs, n)
			}
		}
		mix, set := NewMix(needs), r.Uint64()
		want := func() (sum, idle int64) {
			for _, d := range f.devices {
				if d.Health.OK {
					idle += int64(float64(d.Free) / float64(d.Memory) * CardParts)
				}
			}
			sum = idle * MixWeight
			for i, n := range needs {
				if set>>i&1 == 1 {
					sum -= (idle - lostTo(f, n)) * int64(n.Weight)
				}
			}
			return sum, idle
		}
		var g Gauge
		for range 10 {
			if n := len(f.devices); n > 0 && r.IntN(8) == 0 {
				f.SetHealth(f.devices[r.IntN(n)].UUID, Sick("hot"))
			}
			p, err := f.Place(randomRequest(r))
			if err != nil {
				continue
			}
			lost, idle := g.Units(f, mix, set, &p)
			f.Take(p)
			again, same := g.Units(f, mix, set, nil)
			if sum, all := want(); lost != sum || again != sum || idle != all || same != all {
				t.Fatalf("seed %d: %d of %d lost, %d of %d once it is taken, want %d of %d\n%+v\n%+v", seed, lost, idle, again, same, sum, all, needs, f)
			}
		}
	}
}

// TestFragmentsOfSums holds that a machine of sums and one of units with as much lose the same.
func TestFragmentsOfSums(t *testing.T) {
	f := cut(t, machine(8, 4), Layout{})
	mix := NewMix([]Need{{ask(4, roost.GiB, 1, 0), 500}, {ask(9, roost.GiB, 1, 0), 300}, {ask(1, roost.GiB, 4, 0), 224}})
	var g Gauge
	for _, q := range []Request{ask(5, roost.GiB, 1, 0), ask(1, roost.GiB, 2, 0)} {
		p, err := f.Place(q)
		if err != nil {
			t.Fatal(err)
		}
		f.Take(p)
		lost, idle := g.Units(f, mix, AllNeeds, nil)
		if sum, all := g.Sums(f.Left(), mix, AllNeeds); lost != sum || idle != all {
			t.Errorf("%d of %d lost, and by the sums %d of %d", lost, idle, sum, all)
		}
	}
}
