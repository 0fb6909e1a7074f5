package match

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// BenchmarkOpenB fills the machines of the trace with its workloads. They are the default
// one; many tasks without GPUs; a third of the tasks bound to models; shares only; half
// of the GPUs for tasks that want several. A workload that is not in the directory is
// derived from the default one and has "derived" in its name: its result must not be
// compared with the paper's table. The benchmark reports what is allocated, in percent.
func BenchmarkOpenB(b *testing.B) {
	for _, w := range []string{"default", "cpu250", "gpuspec33", "gpushare100", "multigpu50"} {
		pods, name := openBWorkload(b, w)
		b.Run(name, func(b *testing.B) {
			var o placementOutcome
			for b.Loop() {
				o = runOpenB(b, pods, 10, Hybrid)
			}
			b.ReportMetric(median(o.full), "%at100")
			b.ReportMetric(median(o.end), "%at130")
			b.ReportMetric(o.rate, "placements/s")
		})
	}
}

func openBWorkload(tb testing.TB, workload string) (pods []tracePod, name string) {
	if _, err := os.Stat(filepath.Join(openBDir(), "openb_pod_list_"+workload+".csv")); err == nil ||
		workload == "default" {
		return openBPods(tb, workload), workload
	}
	return deriveWorkload(openBPods(tb, "default"), workload), workload + "-derived"
}

// deriveWorkload makes another workload from the default one.
func deriveWorkload(pods []tracePod, workload string) []tracePod {
	rng := rand.New(rand.NewPCG(33, 250))
	some := func(does func(tracePod) bool) (list []tracePod) {
		for _, p := range pods {
			if does(p) {
				list = append(list, p)
			}
		}
		return list
	}
	draw := func(from []tracePod) tracePod { return from[rng.IntN(len(from))] }
	switch workload {
	case "cpu250": // a quarter of the tasks want no GPU
		none := some(func(p tracePod) bool { return p.GPUs == 0 })
		for n := len(none); 4*n < len(pods); n++ {
			pods = append(pods, draw(none))
		}
	// a third of the tasks with a GPU are bound to one model, in proportion to the GPUs
	// of each model
	case "gpuspec33":
		models := []string{"T4", "G2", "G2", "G2", "P100", "V100M16"}
		for i, p := range pods {
			if p.GPUs == 1 && rng.IntN(3) == 0 {
				pods[i].models = models[rng.IntN(len(models))]
			}
		}
	case "gpushare100": // all tasks with GPUs want shares
		shares := some(func(p tracePod) bool { return p.GPUMemory > 0 })
		for i, p := range pods {
			if p.GPUs > 0 && p.GPUMemory == 0 {
				pods[i] = draw(shares)
			}
		}
	case "multigpu50": // half of the GPUs are for tasks that want several
		several := some(func(p tracePod) bool { return p.GPUs > 1 })
		for rest, n := sumMilli(pods)-sumMilli(several), sumMilli(several); n < rest; {
			p := draw(several)
			pods, n = append(pods, p), n+p.milli()
		}
	}
	return pods
}

func sumMilli(pods []tracePod) (n int) {
	for _, p := range pods {
		n += p.milli()
	}
	return n
}

// TestFragmentationBeatsBestFit fills a small cell that needs no trace. In it, tasks with
// shares can spoil GPUs for the others, and tasks with many cores can spoil machines.
func TestFragmentationBeatsBestFit(t *testing.T) {
	var pods []tracePod
	for _, k := range []struct{ of, cpu, memory, gpus, milli int }{
		{20, 3, 5, 1, 810}, {12, 12, 47, 1, 470}, {6, 12, 47, 1, 650}, {8, 4, 20, 1, 320}, {17, 11, 48, 1, 0},
		{10, 3, 6, 1, 0}, {8, 19, 64, 1, 0}, {13, 14, 50, 0, 0}, {1, 88, 320, 8, 0},
	} {
		for range k.of {
			pods = append(pods, tracePod{Resources: roost.Resources{
				CPU: roost.MilliCPU(k.cpu) * 1000, Memory: roost.Bytes(k.memory) * roost.GiB, GPUs: k.gpus,
				GPUMemory: roost.Bytes(k.milli) * roost.MiB,
			}})
		}
	}
	gain := 0.0
	const seeds = 8
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 7))
		machines, fits, capacity := smallCell(t)
		order := arrivalOrder(rng, pods, capacity)
		full, _ := newArrivingPods(t, machines, pods, Hybrid).placePods(order, capacity)
		gain += (full - fillBestFit(fits, order, capacity)) / seeds
	}
	t.Logf("%.2f %% more of the GPUs are given away than by best fit", gain)
	if gain < 0.5 {
		t.Errorf("%.2f %% more of the GPUs are given away than by best fit, want 0.5", gain)
	}
}

// smallCell returns machines, what is free of each, and their GPUs in thousandths.
func smallCell(tb testing.TB) (list []*Machine, free []*gpu.FreeResources, capacity int) {
	for i := range 60 {
		cores, gpus := 96, 8
		if i%2 == 0 {
			cores, gpus = 104, 2
		}
		m := gpuMachine(tb, fmt.Sprintf("m%02d", i), cores, 512*roost.GiB, gpus, "X")
		list, free, capacity = append(list, m), append(free, m.units.Clone()), capacity+gpus*1000
	}
	return list, free, capacity
}

// fillBestFit gives each pod to the machine on which the least is left.
func fillBestFit(machines []*gpu.FreeResources, order []tracePod, capacity int) (full float64) {
	asked, given := 0, 0
	for _, p := range order {
		best, least := -1, 0.0
		for i, f := range machines {
			if _, err := f.PlaceOrExplain(gpu.DeviceRequest{Resources: p.Resources}); err == nil {
				left := f.LeftForBatch().CPU.Cores() / 96
				for _, d := range f.Devices() {
					left += float64(d.Free) / float64(d.Memory) / 8
				}
				if best < 0 || left < least {
					best, least = i, left
				}
			}
		}
		if best >= 0 {
			place, _ := machines[best].PlaceOrExplain(gpu.DeviceRequest{Resources: p.Resources})
			machines[best].TakePlacement(place)
			given += p.milli()
		}
		if asked += p.milli(); asked <= capacity {
			full = 100 * float64(given) / float64(capacity)
		}
	}
	return full
}
