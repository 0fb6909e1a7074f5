package schedd

import (
	"context"
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue"
)

// machineCapacity is what a machine has when nothing runs on it.
type machineCapacity struct {
	roost.Resources      // GPUMemory: of its largest card; 0 unknown
	isUnknown       bool // its ad does not say
}

// taskRoom is how many tasks that ask for r the machine has room for when it is empty,
// most at most. It may be fewer, by how its units are cut.
func (c machineCapacity) taskRoom(r roost.Resources, most int) int {
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

// checkCapacity says that the machines, even when they are empty, have no room for that
// many tasks at once, or returns "". Without a machine nothing is known of what will
// come.
func checkCapacity(machines []machineCapacity, each roost.Resources, tasks int) string {
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

// checkCellCapacity refuses stream jobs that the pool could not hold if it was empty: who
// serves others is told at once and not after a while. If no collector answers nothing is
// known.
func (s *Schedd) checkCellCapacity(ctx context.Context, specs []queue.SubmitSpec) error {
	var machines []machineCapacity
	for i := range specs {
		each, ok := specs[i].StreamTasks()
		if !ok {
			continue
		}
		if machines == nil {
			var err error
			if machines, err = s.queryCapacity(ctx); err != nil {
				return nil
			}
		}
		if why := checkCapacity(machines, each, specs[i].Count); why != "" {
			err := fmt.Errorf("%w: %s", roost.Invalid, why)
			if len(specs) > 1 {
				err = fmt.Errorf("job %d of the submission: %w", i, err)
			}
			return err
		}
	}
	return nil
}

// queryCapacity asks the collectors in turn until one answers.
func (s *Schedd) queryCapacity(ctx context.Context) (found []machineCapacity, err error) {
	attributes := []string{roost.AttrTotalCpus, roost.AttrTotalMemory, roost.AttrTotalDisk, roost.AttrTotalGpus,
		roost.AttrGpuMemoryMax}
	err = roost.Unavailable
	for _, addr := range s.node.Collectors {
		found = []machineCapacity{}
		if err = s.queryMachines(ctx, addr, "", attributes, func(ad *classad.Ad) {
			found = append(found, readCapacity(ad))
		}); err == nil {
			break
		}
	}
	return found, err
}

func readCapacity(ad *classad.Ad) (c machineCapacity) {
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
	c.isUnknown = !known
	return c
}
