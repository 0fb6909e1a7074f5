package gpu

import (
	"fmt"

	"github.com/roost-batch/roost"
)

// Core is one processor core that tasks may run on.
type Core struct {
	ID   int // the kernel's number
	NUMA int // the memory node that it is attached to; -1 unknown
}

// Topology is what a machine has for tasks.
type Topology struct {
	Cores   []Core
	CPU     roost.MilliCPU // what is handed out; 0 for all of Cores, no more and no less
	Memory  roost.Bytes
	Devices []Device
}

// Unit is a resource unit (RU, HRM §3.1): a part of a machine that is handed out by itself. The disk is none of its things: a machine has one.
type Unit struct {
	Name    string
	Cores   []int // the kernel's numbers, rising; none when it has no cores of its own
	NUMA    int   // the memory node of its cores; -1 for several or unknown
	CPU     roost.MilliCPU
	Memory  roost.Bytes
	Devices []Device
}

// borrows reports whether the unit has devices and nothing for the programs that use them: these take it from a CPU unit.
func (u *Unit) borrows() bool { return len(u.Devices) > 0 && u.CPU == 0 && u.Memory == 0 }

// Class says which of the two queues stacked on a unit a task goes through (HRM §3.3).
type Class uint8

// The classes.
const (
	Batch  Class = iota // may wait on the machine, and takes the processor time that stream leaves
	Stream              // starts at once: its processor time may overlap that of batch, nothing else may
)

func (c Class) String() string { return [...]string{"batch", "stream"}[c] }

// ParseClass reads the name of a class; none is Batch.
func ParseClass(s string) (Class, error) {
	switch s {
	case "", "batch":
		return Batch, nil
	case "stream":
		return Stream, nil
	}
	return Batch, fmt.Errorf("%q is not a class: %w: use batch or stream", s, roost.Invalid)
}

// Queue is how the batch queue of a unit stands (HRM §3.4).
type Queue struct {
	RunLimit int     // how many batch tasks may hold a part of the unit at once; 0 for as many as fit
	Running  int     // how many do
	Length   int     // how many wait
	Room     int     // how many more may wait
	Wait     float64 // seconds until one more like the last would start, as predicted; 0 when it starts at once
}

// Shut reports whether nothing of class batch may be placed in the unit now: others wait for it, or it runs as many as it may.
func (q Queue) Shut() bool { return q.Length > 0 || q.RunLimit > 0 && q.Running >= q.RunLimit }
