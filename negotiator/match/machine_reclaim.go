package match

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// Tasks ask for more than they use. A machine that reclaims says of each unit what its
// tasks are expected to leave (package gpu, Borg §5.5): batch and free are placed by
// that, and production by limits, so that it never relies on what somebody may want back.
// A machine that reclaims more boldly than the cell allows is treated as one that does
// not: only it could say what it would lend if it were more careful.

// readReclaim notes how boldly a machine reclaims. One that gives no good word for it
// does not.
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

// setReclaimLevel says how boldly the cell lets machines reclaim.
func (m *Machine) setReclaimLevel(most roost.ReclaimLevel) {
	if m.Reclaim != roost.ReclaimOff {
		m.units.SetReclaim(m.Reclaim <= most)
	}
}

// setReclaimLevel notes how boldly machines may reclaim. When that changes, those that do
// begin anew.
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

// freeForClass is what is free of units for requests of a class, by sums.
func freeForClass(f *gpu.FreeResources, c *RequestClass) roost.Resources {
	r := f.LeftForRequest(c.mayReclaim)
	if c.AppClass == gpu.StreamClass {
		r.CPU = maxStreamCPU(f, c.mayReclaim)
	}
	return r
}

// maxStreamCPU is the most processor time that a stream task is given in one unit.
func maxStreamCPU(f *gpu.FreeResources, mayReclaim bool) (most roost.MilliCPU) {
	for i := range f.Len() {
		most = max(most, maxUnitResources(f, i, gpu.StreamClass, mayReclaim).CPU)
	}
	return most
}

// maxUnitResources is what a task is given of one unit at most, queues aside.
func maxUnitResources(f *gpu.FreeResources, i int, app gpu.AppClass, mayReclaim bool) roost.Resources {
	if !mayReclaim {
		return f.UnitFree(i, app)
	}
	return maxResources(f.Reclaimable(i, app), roost.Resources{})
}
