package ledger

import (
	"fmt"

	"github.com/roost-batch/roost"
)

// Of what queues and the pool count beside tasks, each in its unit: thousandths of cores, bytes, or a number.

// AmountIn is how much of a counted resource there is.
func AmountIn(r roost.Resources, name string) int64 {
	switch name {
	case "cpus":
		return int64(r.CPU)
	case "memory_bytes":
		return int64(r.Memory)
	case "disk_bytes":
		return int64(r.Disk)
	}
	return int64(r.GPUs)
}

// MostOf is a bound on a counted resource in the same unit.
func (b Bound) MostOf(name string) int64 {
	if name == "cpus" {
		return b.Most * 1000
	}
	return b.Most
}

// InUnit writes an amount of a counted resource for people.
func InUnit(n int64, name string) string {
	switch name {
	case "cpus":
		return roost.MilliCPU(n).String()
	case "gpus":
		return fmt.Sprint(n)
	}
	return roost.Bytes(n).String()
}

// ResourceName is PBS's name of what is counted.
func ResourceName(name string) string {
	return map[string]string{"cpus": "ncpus", "memory_bytes": "mem", "disk_bytes": "disk", "gpus": "ngpus"}[name]
}
