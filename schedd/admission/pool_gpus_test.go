package admission

import (
	"testing"

	"github.com/roost-batch/roost"
)

// TestMissingGPUs holds which requests are known to be impossible, and what is said of
// them.
func TestMissingGPUs(t *testing.T) {
	pool := []GPUMachine{{"big", 1, 80 * roost.GiB}, {"many", 4, 16 * roost.GiB}}
	for _, c := range []struct {
		machines []GPUMachine
		gpus     int
		memory   roost.Bytes
		want     string
	}{
		{nil, 64, roost.TiB, ""},
		{pool, 1, 80 * roost.GiB, ""},
		{pool, 4, 16 * roost.GiB, ""},
		{pool, 4, 0, ""},
		{pool, 1, 81 * roost.GiB,
			"no GPU of the pool has 81GiB of memory: the largest has 80GiB, on big; ask for at most that"},
		{pool, 5, 0, "no machine of the pool has 5 GPUs: the most are 4, on many; ask for at most 4"},
		{pool, 2, 40 * roost.GiB, "no machine of the pool has 2 GPUs with 40GiB of memory: the largest GPU has " +
			"80GiB, on big, and the most are 4, on many"},
		{[]GPUMachine{{"old", 2, 0}}, 2, 80 * roost.GiB, ""},
	} {
		if got := missingGPUs(c.machines, roost.Resources{GPUs: c.gpus, GPUMemory: c.memory}); got != c.want {
			t.Errorf("%d GPUs with %v: got %q, want %q", c.gpus, c.memory, got, c.want)
		}
	}
}
