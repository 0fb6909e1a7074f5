package admission

import (
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

func TestCellCapacity(t *testing.T) {
	var pool []MachineCapacity
	for _, text := range []string{
		"[TotalCpus = 8; TotalMemory = 16384; TotalDisk = 1000000]",
		"[TotalCpus = 4; TotalMemory = 4096; TotalDisk = 1000000; TotalGpus = 2; GpuMemoryMax = 40960]",
	} {
		ad, err := classad.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		pool = append(pool, ReadCapacity(ad))
	}
	silent := ReadCapacity(classad.New())
	small := roost.Resources{CPU: 1000, Memory: roost.GiB}
	shared := roost.Resources{CPU: 100, Memory: roost.MiB, GPUs: 1, GPUMemory: 16 * roost.GiB}
	for _, c := range []struct {
		machines []MachineCapacity
		each     roost.Resources
		tasks    int
		want     string
	}{
		{nil, small, 1000, ""},
		{pool, small, 12, ""},
		{pool, small, 13, "the pool cannot hold this stream job: its 13 tasks start together, and even when nothing " +
			"runs there is room for 12 of them, on 2 of 2 machines, with 1 cpu, 1GiB memory each; submit at most 12"},
		{pool, roost.Resources{CPU: 1000, Memory: 16 * roost.GiB}, 2,
			"the pool cannot hold this stream job: its 2 tasks start together, and even when nothing runs there is " +
				"room for 1 of them, on 1 of 2 machines, with 1 cpu, 16GiB memory each; submit at most 1"},
		{pool, roost.Resources{CPU: 9000, Memory: 1}, 1,
			"the pool cannot hold this stream job: none of its 2 machines has 9 cpus, 1B memory, even when nothing " +
				"runs there"},
		{pool, shared, 4, ""},
		{pool, shared, 5, "the pool cannot hold this stream job: its 5 tasks start together, and even when nothing " +
			"runs there is room for 4 of them, on 1 of 2 machines, with 0.1 cpus, 1MiB memory, 1 gpu with 16GiB " +
			"each; submit at most 4"},
		{append(pool, silent), small, 1000, ""},
	} {
		if got := CheckCapacity(c.machines, c.each, c.tasks); got != c.want {
			t.Errorf("%d of %v: got %q, want %q", c.tasks, c.each, got, c.want)
		}
	}
}
