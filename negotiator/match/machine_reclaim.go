package match

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// Tasks ask for more than they use. A machine that reclaims advertises, for each unit,
// what its tasks are not expected to use (package gpu, Borg §5.5). Batch and free are
// placed by that, and production by limits, so that production never relies on what
// another task may want back. A machine that reclaims more boldly than the cell allows is
// treated as one that does not reclaim, because only the machine knows what a more
// careful level would yield.

// readReclaim reads how boldly a machine reclaims. Without a valid level it does not
// reclaim.
func (m *Machine) readReclaim() {
	if text, ok := m.Ad.Str(roost.AttrReclaim); ok {
		m.Reclaim, _ = roost.ParseReclaimLevel(text)
	}
	if !m.units.IsReclaiming() {
		m.Reclaim = roost.ReclaimOff
	}
	m.units.SetReclaim(false)
	m.freeByUnit = m.freeByUnit || m.Reclaim != roost.ReclaimOff
}

// setReclaimLevel applies the boldest level that the cell allows to the machine.
func (m *Machine) setReclaimLevel(most roost.ReclaimLevel) {
	if m.Reclaim != roost.ReclaimOff {
		m.units.SetReclaim(m.Reclaim <= most)
	}
}

// setReclaimLevel applies the boldest level that the cell allows. When it changes,
// machines that reclaim are reset.
func (g *machineTable) setReclaimLevel(most roost.ReclaimLevel) {
	if most == g.reclaim {
		return
	}
	g.reclaim = most
	for at, m := range g.machines {
		if m.Reclaim != roost.ReclaimOff {
			g.toReset = append(g.toReset, int32(at))
		}
	}
}

// freeForClass returns the sums of what is free of units for requests of a class.
func freeForClass(f *gpu.FreeResources, c *RequestClass) roost.Resources {
	r := f.LeftForRequest(c.mayReclaim)
	if c.AppClass == gpu.StreamClass {
		r.CPU = maxStreamCPU(f, c.mayReclaim)
	}
	return r
}

// maxStreamCPU returns the most CPU that a stream task can get in one unit.
func maxStreamCPU(f *gpu.FreeResources, mayReclaim bool) (most roost.MilliCPU) {
	for i := range f.Len() {
		most = max(most, maxUnitResources(f, i, gpu.StreamClass, mayReclaim).CPU)
	}
	return most
}

// maxUnitResources returns the most that a task can get of one unit, ignoring node
// queues.
func maxUnitResources(f *gpu.FreeResources, i int, app gpu.AppClass, mayReclaim bool) roost.Resources {
	if !mayReclaim {
		return f.UnitFree(i, app)
	}
	return maxResources(f.Reclaimable(i, app), roost.Resources{})
}
