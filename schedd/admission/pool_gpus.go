package admission

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue"
)

// GPUMachine is a machine with GPUs.
type GPUMachine struct {
	Name   string
	GPUs   int
	Memory roost.Bytes // of its largest card; 0 unknown
}

// missingGPUs says why no machine can ever have what a request asks for, or returns "".
// Without a machine with GPUs nothing is known of what will come.
func missingGPUs(machines []GPUMachine, r roost.Resources) string {
	if len(machines) == 0 {
		return ""
	}
	var largest, most GPUMachine
	for _, m := range machines {
		if m.GPUs >= r.GPUs && (m.Memory >= r.GPUMemory || m.Memory == 0) {
			return ""
		}
		if m.Memory > largest.Memory || m.Memory == largest.Memory && m.GPUs > largest.GPUs {
			largest = m
		}
		if m.GPUs > most.GPUs {
			most = m
		}
	}
	switch {
	case r.GPUs > most.GPUs && r.GPUMemory <= largest.Memory:
		return fmt.Sprintf("no machine of the pool has %d GPUs: the most are %d, on %s; ask for at most %d", r.GPUs,
			most.GPUs, most.Name, most.GPUs)
	case r.GPUMemory > largest.Memory && r.GPUs <= most.GPUs:
		return fmt.Sprintf("no GPU of the pool has %v of memory: the largest has %v, on %s; ask for at most that",
			r.GPUMemory, largest.Memory, largest.Name)
	}
	return fmt.Sprintf("no machine of the pool has %d GPUs with %v of memory: the largest GPU has %v, on %s, and "+
		"the most are %d, on %s",
		r.GPUs, r.GPUMemory, largest.Memory, largest.Name, most.GPUs, most.Name)
}

// GPURefusal says which job asks for GPUs that no machine has; nil: none does.
func GPURefusal(machines []GPUMachine, specs []queue.SubmitSpec) error {
	for i := range specs {
		for _, n := range specs[i].GPUs() {
			why := missingGPUs(machines, n.Resources)
			if why == "" {
				continue
			}
			err := fmt.Errorf("%w: %s", roost.Invalid, why)
			if specs[i].Count > 1 {
				err = fmt.Errorf("task %d: %w", n.Task, err)
			}
			if len(specs) > 1 {
				err = fmt.Errorf("job %d of the submission: %w", i, err)
			}
			return err
		}
	}
	return nil
}
