package admission

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
)

// MachineCapacity is what a machine has when nothing runs on it.
type MachineCapacity struct {
	roost.Resources      // GPUMemory: of its largest card; 0 unknown
	isUnknown       bool // its ad does not say
}

// taskRoom bounds how many tasks that ask for r fit into the machine when it is empty.
// The result is at most most. The cut of its resource units may leave room for fewer.
func (c MachineCapacity) taskRoom(r roost.Resources, most int) int {
	if c.isUnknown {
		return most
	}
	plain := r
	plain.GPUs, plain.GPUMemory = 0, 0
	n := min(most, plain.TimesIn(c.Resources))
	if r.GPUs == 0 {
		return n
	}
	if c.GPUs < r.GPUs {
		return 0
	}
	gpuCount := int64(c.GPUs)
	if r.GPUMemory > 0 && c.GPUMemory > 0 {
		gpuCount *= int64(c.GPUMemory / r.GPUMemory) // shares of one card
	} else if r.GPUMemory > 0 {
		return n
	}
	return min(n, int(min(gpuCount/int64(r.GPUs), int64(most))))
}

// CheckCapacity says why empty machines have no room for that many tasks at once; "" if
// they have. Without a machine nothing is known of what will come.
func CheckCapacity(machines []MachineCapacity, each roost.Resources, tasks int) string {
	room, able := 0, 0
	for _, m := range machines {
		if n := m.taskRoom(each, tasks); n > 0 {
			able++
			if room += n; room >= tasks {
				return ""
			}
		}
	}
	switch {
	case len(machines) == 0:
		return ""
	case room == 0:
		return fmt.Sprintf("the pool cannot hold this stream job: none of its %d machines has %v, even when nothing "+
			"runs there", len(machines), each)
	}
	return fmt.Sprintf("the pool cannot hold this stream job: its %d tasks start together, and even when nothing "+
		"runs there is room for %d of them, on %d of %d machines, with %v each; submit at most %d",
		tasks, room, able, len(machines), each, room)
}

// ReadCapacity reads the capacity of a machine from its ad.
func ReadCapacity(ad *classad.Ad) (c MachineCapacity) {
	cpus, known := ad.Real(roost.AttrTotalCpus)
	whole := func(name string) int64 {
		n, ok := ad.Int(name)
		known = known && (ok || name == roost.AttrTotalGpus || name == roost.AttrGpuMemoryMax)
		return n
	}
	c.CPU = roost.MilliCPU(cpus * 1000)
	c.Memory, c.Disk = roost.Bytes(whole(roost.AttrTotalMemory))*roost.MiB,
		roost.Bytes(whole(roost.AttrTotalDisk))*roost.KiB
	c.GPUs, c.GPUMemory = int(whole(roost.AttrTotalGpus)), roost.Bytes(whole(roost.AttrGpuMemoryMax))*roost.MiB
	c.IO = gpu.IORatesOf(ad, roost.AttrTotalDiskIO, roost.AttrTotalNetwork)
	c.isUnknown = !known
	return c
}
