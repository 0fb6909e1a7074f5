package match

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// preemptible is what the claims of a machine up to a band would make room for.
type preemptible struct {
	claims        int
	cpu           [2]roost.MilliCPU // by class, with GPUs and without
	memory        roost.Bytes
	largestCPU    [2]roost.MilliCPU // one of them, at most
	largestMemory roost.Bytes       // likewise, of memory
}

// indexPreemptible notes who might be evicted, by bands that include those below.
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

// totalFree is what is free of a machine in all, whatever the queues say.
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

// placement is what a claim holds, in a form that can be counted with. On a machine that
// says nothing of units it is all of one.
func (c *MachineClaim) placement(m *Machine) gpu.Placement {
	if m.units != nil {
		return c.Placement
	}
	return gpu.Placement{Class: c.AppClass(), Disk: c.Resources.Disk,
		Parts: []gpu.UnitPart{{CPU: c.Resources.CPU, Memory: c.Resources.Memory}}}
}

// stepsNeeded is how many of that size it takes at least.
func stepsNeeded[T roost.MilliCPU | roost.Bytes](missing, size T) int {
	if missing <= 0 || size <= 0 {
		return 0
	}
	return int((missing + size - 1) / size)
}
