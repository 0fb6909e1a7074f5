package accounting

import (
	"github.com/roost-batch/roost"
)

// MachineState is what the events of a machine up to a time say about it.
type MachineState struct {
	Present   bool
	Drained   bool
	Reclaimed bool // its owner uses it
	Desktop   bool // it has an owner
	Capacity  roost.Resources
	Class     string
}

// Apply folds an event into the state. Events come in the order of time.
func (s *MachineState) Apply(e *MachineEvent) {
	switch e.What {
	case MachineAdded, MachineUpdated:
		s.Present, s.Capacity, s.Class = true, e.Capacity, e.Class
	case MachineRemoved:
		*s = MachineState{Desktop: s.Desktop, Capacity: s.Capacity, Class: s.Class, Drained: s.Drained}
	case MachineDrained:
		s.Drained = true
	case MachineUndrained:
		s.Drained = false
	case MachineAvailable:
		s.Desktop, s.Reclaimed = true, false
	case MachineReclaimed:
		s.Desktop, s.Reclaimed = true, true
	}
}

// AddTo adds what the machine had during [begin, end) to a line of its class.
func (s *MachineState) AddTo(c *CapacityLine, begin, end Millis) {
	if !s.Present || end <= begin {
		return
	}
	ms := int64(end - begin)
	cores := mulDiv(ms, int64(s.Capacity.CPU), 1000)
	c.Total += cores
	c.TotalGPU += mulDiv(ms, int64(s.Capacity.GPUs), 1)
	switch {
	case s.Reclaimed:
		c.Owner += cores
	case s.Drained:
		c.Drained += cores
	}
}

// Balance computes Idle, and cuts what is counted twice. That are attempts on a machine
// that is drained or that its owner has taken back.
func (c *CapacityLine) Balance() {
	c.Held = min(c.Held, c.Total)
	c.Owner = min(c.Owner, c.Total-c.Held)
	c.Drained = min(c.Drained, c.Total-c.Held-c.Owner)
	c.Idle = c.Total - c.Held - c.Owner - c.Drained
}

// Add adds the amounts of b to c.
func (c *CapacityLine) Add(b *CapacityLine) {
	c.Total += b.Total
	c.Owner += b.Owner
	c.Drained += b.Drained
	c.Held += b.Held
	c.Idle += b.Idle
	c.Used += b.Used
	c.Desktop += b.Desktop
	c.TotalGPU += b.TotalGPU
	c.HeldGPU += b.HeldGPU
}
