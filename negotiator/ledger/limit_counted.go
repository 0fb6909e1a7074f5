package ledger

import (
	"fmt"

	"github.com/roost-batch/roost"
)

// Queues and the pool also limit amounts of resources. Each resource has its own unit:
// thousandths of a core, bytes, or a number.

// CountedAmount returns the amount of a counted resource in r, in the resource's unit.
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

// MaxInUnit returns the bound on a counted resource in the resource's unit.
func (b LimitBound) MaxInUnit(name string) int64 {
	if name == "cpus" {
		return b.Max * 1000
	}
	return b.Max
}

// AmountText formats an amount of a counted resource for people.
func AmountText(n int64, name string) string {
	switch name {
	case "cpus":
		return roost.MilliCPU(n).String()
	case "gpus":
		return fmt.Sprint(n)
	}
	return roost.Bytes(n).String()
}

// ResourceName returns the PBS name of a counted resource.
func ResourceName(name string) string {
	return map[string]string{"cpus": "ncpus", "memory_bytes": "mem", "disk_bytes": "disk", "gpus": "ngpus"}[name]
}
