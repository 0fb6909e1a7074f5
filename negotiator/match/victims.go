package match

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// larder is what the claims of a machine up to a band would make room for.
type larder struct {
	claims int
	cpu    [2]roost.MilliCPU // by class, with GPUs and without
	memory roost.Bytes
	most   [2]roost.MilliCPU // one of them, at most
	ample  roost.Bytes       // likewise, of memory
}

// stock notes who might be evicted, by bands that include those below.
func (m *Machine) stock() {
	for i := range m.Claims {
		c := &m.Claims[i]
		m.leaves = m.leaves || c.Leaving
		if c.Leaving || c.Band.Prod() {
			continue
		}
		for band := c.Band; band <= roost.Batch; band++ {
			l := &m.prey[band]
			l.claims++
			if !c.Placement.Reclaimed {
				l.cpu[c.App()] += c.Resources.CPU
				l.memory += c.Resources.Memory
				l.most[c.App()] = max(l.most[c.App()], c.Resources.CPU)
				l.ample = max(l.ample, c.Resources.Memory)
			}
		}
	}
	m.leaves = m.leaves || len(m.Heirs) > 0
}

// sums is what is free of a machine in all, whatever the queues say.
func (p *plan) sums(app gpu.Class, at int) (cpu roost.MilliCPU, memory roost.Bytes) {
	f := p.units[at]
	if f == nil {
		if app == gpu.Stream {
			return p.stream[at], p.free[at].Memory
		}
		return p.free[at].CPU, p.free[at].Memory
	}
	for i := range f.Len() {
		u := f.UnitFree(i, app)
		cpu, memory = cpu+u.CPU, memory+u.Memory
	}
	return cpu, memory
}

// placement is what a claim holds, in a form that can be counted with. On a machine that says nothing of units it is all of one.
func (c *Claim) placement(m *Machine) gpu.Placement {
	if m.units != nil {
		return c.Placement
	}
	return gpu.Placement{Class: c.App(), Disk: c.Resources.Disk, Parts: []gpu.Part{{CPU: c.Resources.CPU, Memory: c.Resources.Memory}}}
}

// steps is how many of that size it takes at least.
func steps[T roost.MilliCPU | roost.Bytes](missing, size T) int {
	if missing <= 0 || size <= 0 {
		return 0
	}
	return int((missing + size - 1) / size)
}
