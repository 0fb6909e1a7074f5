package gpu

import (
	"fmt"

	"github.com/roost-batch/roost"
)

// CPUCore is one processor core that tasks may run on.
type CPUCore struct {
	ID       int // the kernel's number
	NUMANode int // the memory node that it is attached to; -1 unknown
}

// MachineTopology is what a machine has for tasks.
type MachineTopology struct {
	Cores   []CPUCore
	CPU     roost.MilliCPU // what is handed out; 0 for all of Cores, no more and no less
	Memory  roost.Bytes
	Devices []Device
}

// ResourceUnit is a resource unit (RU, HRM §3.1): a part of a machine that is handed out
// by itself. The disk is none of its things: a machine has one.
type ResourceUnit struct {
	Name    string
	Cores   []int // the kernel's numbers, rising; none when it has no cores of its own
	NUMA    int   // the memory node of its cores; -1 for several or unknown
	CPU     roost.MilliCPU
	Memory  roost.Bytes
	Devices []Device
}

// usesCPUOfOthers reports whether the unit has devices and nothing for the programs that
// use them: these take it from a CPU unit.
func (u *ResourceUnit) usesCPUOfOthers() bool {
	return len(u.Devices) > 0 && u.CPU == 0 && u.Memory == 0
}

// AppClass says which of the two queues stacked on a unit a task goes through (HRM §3.3).
type AppClass uint8

// The classes.
const (
	BatchClass  AppClass = iota // may wait on the machine, and takes the processor time that stream leaves
	StreamClass                 // starts at once: its processor time may overlap that of batch, nothing else may
)

func (c AppClass) String() string { return [...]string{"batch", "stream"}[c] }

// ParseClass reads the name of a class; none is BatchClass.
func ParseClass(s string) (AppClass, error) {
	switch s {
	case "", "batch":
		return BatchClass, nil
	case "stream":
		return StreamClass, nil
	}
	return BatchClass, fmt.Errorf("%q is not a class: %w: use batch or stream", s, roost.Invalid)
}

// UnitQueue is how the batch queue of a unit stands (HRM §3.4).
type UnitQueue struct {
	RunLimit    int     // how many batch tasks may hold a part of the unit at once; 0 for as many as fit
	Running     int     // how many do
	Length      int     // how many wait
	FreePlaces  int     // how many more may wait
	WaitSeconds float64 // seconds until one more like the last would start, as predicted; 0 when it starts at once
}

// IsClosed reports whether nothing of class batch may be placed in the unit now: others
// wait for it, or it runs as many as it may.
func (q UnitQueue) IsClosed() bool { return q.Length > 0 || q.RunLimit > 0 && q.Running >= q.RunLimit }
