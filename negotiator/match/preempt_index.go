package match

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// preemptible sums what evicting the claims of a machine up to a band would free.
type preemptible struct {
	claims        int
	cpu           [2]roost.MilliCPU // by appclass
	memory        roost.Bytes
	largestCPU    [2]roost.MilliCPU // by appclass: the largest CPU of one claim
	largestMemory roost.Bytes       // the largest memory of one claim
}

// indexPreemptible sums the preemptible claims by band; each band includes those below.
func (m *Machine) indexPreemptible() {
	for i := range m.Claims {
		c := &m.Claims[i]
		m.claimsChanging = m.claimsChanging || c.Vacating
		if c.Vacating || c.Band.IsProd() {
			continue
		}
		for band := c.Band; band <= roost.BatchBand; band++ {
			l := &m.preemptible[band]
			l.claims++
			if !c.Placement.Reclaimed {
				l.cpu[c.AppClass()] += c.Resources.CPU
				l.memory += c.Resources.Memory
				l.largestCPU[c.AppClass()] = max(l.largestCPU[c.AppClass()], c.Resources.CPU)
				l.largestMemory = max(l.largestMemory, c.Resources.Memory)
			}
		}
	}
	m.claimsChanging = m.claimsChanging || len(m.Preemptors) > 0
}

// totalFree returns the CPU and memory that are free on a machine, ignoring node queues.
func (p *negotiationCycle) totalFree(app gpu.AppClass, at int) (cpu roost.MilliCPU, memory roost.Bytes) {
	f := p.units[at]
	if f == nil {
		if app == gpu.StreamClass {
			return p.streamFree[at], p.free[at].Memory
		}
		return p.free[at].CPU, p.free[at].Memory
	}
	for i := range f.Len() {
		u := f.UnitFree(i, app)
		cpu, memory = cpu+u.CPU, memory+u.Memory
	}
	return cpu, memory
}

// placement returns what a claim holds as a placement. On a machine that does not
// describe its units it is one part of one unit.
func (c *MachineClaim) placement(m *Machine) gpu.Placement {
	if m.units != nil {
		return c.Placement
	}
	return gpu.Placement{Class: c.AppClass(), Disk: c.Resources.Disk, IO: c.Resources.IO,
		Parts: []gpu.UnitPart{{CPU: c.Resources.CPU, Memory: c.Resources.Memory}}}
}

// stepsNeeded returns how many pieces of a size cover what is missing, at least.
func stepsNeeded[T roost.MilliCPU | roost.Bytes](missing, size T) int {
	if missing <= 0 || size <= 0 {
		return 0
	}
	return int((missing + size - 1) / size)
}
