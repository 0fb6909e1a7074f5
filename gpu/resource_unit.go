package gpu

import (
	"fmt"

	"github.com/roost-batch/roost"
)

// CPUCore is one CPU core on which tasks may run.
type CPUCore struct {
	ID       int // the kernel's number
	NUMANode int // NUMA node of the core; -1 unknown
}

// MachineTopology is what a machine has for tasks.
type MachineTopology struct {
	Cores   []CPUCore
	CPU     roost.MilliCPU // CPU for tasks; 0: all of Cores
	Memory  roost.Bytes
	Devices []Device
}

// ResourceUnit is a resource unit (RU, HRM §3.1): a part of a machine that is allocated
// by itself. It has no disk, because a machine has only one.
type ResourceUnit struct {
	Name    string
	Cores   []int // the kernel's numbers, rising; empty if it has no cores of its own
	NUMA    int   // NUMA node of its cores; -1 for several or unknown
	CPU     roost.MilliCPU
	Memory  roost.Bytes
	Devices []Device
}

// usesCPUOfOthers reports whether the unit has devices and no CPU. Programs on its
// devices take CPU from a CPU unit.
func (u *ResourceUnit) usesCPUOfOthers() bool {
	return len(u.Devices) > 0 && u.CPU == 0 && u.Memory == 0
}

// AppClass selects one of the two node queues that are stacked on a unit (HRM §3.3).
type AppClass uint8

// The classes.
const (
	BatchClass  AppClass = iota // may wait on the machine, and uses the CPU that stream tasks leave
	StreamClass                 // starts at once: its CPU may overlap that of batch tasks, its other resources may not
)

func (c AppClass) String() string { return [...]string{"batch", "stream"}[c] }

// ParseClass reads the name of a class; empty is BatchClass.
func ParseClass(s string) (AppClass, error) {
	switch s {
	case "", "batch":
		return BatchClass, nil
	case "stream":
		return StreamClass, nil
	}
	return BatchClass, fmt.Errorf("%q is not a class: %w: use batch or stream", s, roost.Invalid)
}

// UnitQueue is the state of the batch node queue of a unit (HRM §3.4).
type UnitQueue struct {
	RunLimit    int     // the most batch tasks that may hold a part of the unit at once; 0: no limit
	Running     int     // batch tasks that hold a part of the unit
	Length      int     // tasks that wait
	FreePlaces  int     // how many more tasks may wait
	WaitSeconds float64 // predicted wait in seconds of one more task like the last; 0 if it would start at once
}

// IsClosed reports whether no batch task may be placed in the unit now. Either others
// wait for it, or it runs its limit of tasks.
func (q UnitQueue) IsClosed() bool { return q.Length > 0 || q.RunLimit > 0 && q.Running >= q.RunLimit }
