package ledger

import (
	"fmt"

	"github.com/roost-batch/roost"
)

// Of what queues and the pool count beside tasks, each in its unit: thousandths of cores,
// bytes, or a number.

// CountedAmount is how much of a counted resource there is.
func CountedAmount(r roost.Resources, name string) int64 {
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

// MaxInUnit is a bound on a counted resource in the same unit.
func (b LimitBound) MaxInUnit(name string) int64 {
	if name == "cpus" {
		return b.Max * 1000
	}
	return b.Max
}

// AmountText writes an amount of a counted resource for people.
func AmountText(n int64, name string) string {
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
