package packing

import (
	"errors"
	"fmt"
	"math"
	"math/rand"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/match"
)

// smallCell returns a cell of machines of several shapes. load is its work in percent of
// the cell.
func smallCell(tb testing.TB, machines int, load float64, random *rand.Rand) *CellWorkload {
	shapes := []TraceNode{
		{CPU: 96000, Memory: 384 * roost.GiB, GPUs: 8, GPUModel: "G2"},
		{CPU: 104000, Memory: 512 * roost.GiB, GPUs: 2, GPUModel: "T4"},
		{CPU: 16000, Memory: 120 * roost.GiB, GPUs: 2, GPUModel: "P100"},
		{CPU: 32000, Memory: 128 * roost.GiB, GPUs: 4, GPUModel: "V100"},
	}
	kinds := []TracePod{
		{CPU: 3000, Memory: 5 * roost.GiB, GPUs: 1, GPUMilli: 810, QoS: "LS"},
		{CPU: 12000, Memory: 47 * roost.GiB, GPUs: 1, GPUMilli: 470, QoS: "BE"},
		{CPU: 4000, Memory: 20 * roost.GiB, GPUs: 1, GPUMilli: 320, QoS: "LS"},
		{CPU: 8000, Memory: 30 * roost.GiB, GPUs: 1, GPUMilli: 1000, QoS: "BE"},
		{CPU: 10000, Memory: 60 * roost.GiB, GPUs: 2, GPUMilli: 1000, QoS: "LS"},
		{CPU: 6000, Memory: 30 * roost.GiB, QoS: "BE"},
		{CPU: 80000, Memory: 300 * roost.GiB, GPUs: 8, GPUMilli: 1000, QoS: "LS"}, {CPU: 2000, Memory: 8 * roost.GiB,
			GPUs: 1, GPUMilli: 500, GPUModels: []string{"P100", "T4"}, QoS: "Burstable"},
	}
	often := []int{20, 15, 15, 20, 6, 10, 1, 13}
	var nodes []TraceNode
	gpus := 0
	for i := range machines {
		n := shapes[i%len(shapes)]
		n.Name = fmt.Sprintf("m%03d", i)
		nodes, gpus = append(nodes, n), gpus+n.GPUs
	}
	var pods []TracePod
	for milli := 0.0; milli < 1000*float64(gpus)*load/100; {
		k, n := 0, random.Intn(100)
		for ; n >= often[k]; k++ {
			n -= often[k]
		}
		p := kinds[k]
		p.Name, p.Created = fmt.Sprintf("p%05d", len(pods)), int64(len(pods))
		pods, milli = append(pods, p), milli+float64(p.GPUs*p.GPUMilli)
	}
	c, err := NewCell(nodes, pods)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// TestFill checks that filling is reproducible and depends on the seed. Nothing may be
// allocated that was not requested. Roost's score must fill more than best fit, and best
// fit more than worst fit.
func TestFill(t *testing.T) {
	sums := map[match.ScorePolicy]float64{}
	for seed := range int64(6) {
		c := smallCell(t, 40, 100, rand.New(rand.NewSource(seed)))
		for _, by := range []match.ScorePolicy{match.Hybrid, match.BestFit, match.WorstFit, match.Fragmentation} {
			f, err := FillCell(c, by, seededOrder(seed))
			if err != nil {
				t.Fatal(err)
			}
			again, err := FillCell(c, by, seededOrder(seed))
			if err != nil || again.Digest != f.Digest {
				t.Fatalf("%v, seed %d: %x, then %x (%v)", by, seed, f.Digest, again.Digest, err)
			}
			if other, _ := FillCell(c, by, seededOrder(seed+100)); other.Digest == f.Digest {
				t.Fatalf("%v: seeds %d and %d come out the same", by, seed, seed+100)
			}
			last := FillPoint{}
			for q, p := range f.Points {
				if p.Arrived > float64(q)+1e-9 || p.Allocated > p.Arrived+1e-9 || p.Allocated > 100 ||
					p.Allocated < last.Allocated || p.FragmentationRatio < 0 || p.FragmentationRatio > 100+1e-9 {
					t.Fatalf("%v, seed %d: at %d %%: %+v", by, seed, q, p)
				}
				// shares are counted in 1024ths of a GPU
				if want := p.FragmentationRatio * (100 - p.Allocated) /
					100; math.Abs(p.FragmentationAmount-want) > 0.2 {
					t.Fatalf("%v, seed %d: at %d %%: %+v, want %.2f %% lost", by, seed, q, p, want)
				}
				last = p
			}
			if len(f.Points) != FillLimit+1 || f.Placed > f.Arrived || f.Placed == 0 {
				t.Fatalf("%d points; %d of %d placed", len(f.Points), f.Placed, f.Arrived)
			}
			sums[by] += f.PointAt(100).Allocated / 6
		}
	}
	t.Log(sums)
	if sums[match.Hybrid] < sums[match.BestFit] || sums[match.BestFit] < sums[match.WorstFit] {
		t.Errorf("%v: want hybrid to give away the most, then best fit", sums)
	}
}

// TestTypical checks that the typical tasks are the most frequent ones, make up 95 %, and
// have exact weights.
func TestTypical(t *testing.T) {
	c := smallCell(t, 40, 100, rand.New(rand.NewSource(1)))
	needs := typicalTasks(c.Requests)
	sum, least := 0, gpu.MixWeight
	for _, n := range needs {
		if sum += n.Weight; n.Weight > least+1 || n.Weight < 1 || n.Memory != 0 {
			t.Errorf("%+v after one of weight %d", n.MixRequest, least)
		}
		least = n.Weight
	}
	if sum != gpu.MixWeight {
		t.Errorf("they weigh %d, want %d", sum, gpu.MixWeight)
	}
	all := 0
	for i := range needs {
		for _, r := range c.Requests {
			if r.Class == needs[i].class {
				all += r.Wanted
			}
		}
		if enough := 100*all >= 95*len(c.Tasks); enough != (i == len(needs)-1) {
			t.Errorf("the first %d of %d kinds have %d of %d tasks", i+1, len(needs), all, len(c.Tasks))
		}
	}
}

// TestNothingToFill checks that a cell without GPUs and work without GPUs are refused.
func TestNothingToFill(t *testing.T) {
	node, pod := TraceNode{Name: "n", CPU: 1000, Memory: roost.GiB}, TracePod{Name: "p", CPU: 1000}
	for _, with := range []int{0, 1} {
		node.GPUs = with
		c, err := NewCell([]TraceNode{node}, []TracePod{pod})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := FillCell(c, match.Hybrid, seededOrder(1)); !errors.Is(err, roost.Invalid) {
			t.Errorf("%d GPUs: %v", with, err)
		}
	}
}
