package match

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// Tasks ask for more than they use. A machine that reclaims says of each unit what its tasks are expected to leave (package gpu, Borg §5.5): batch and
// free are placed by that, and production by limits, so that it never relies on what somebody may want back. A machine that reclaims more boldly than
// the cell allows is treated as one that does not: only it could say what it would lend if it were more careful.

// readReclaim notes how boldly a machine reclaims. One that gives no good word for it does not.
func (m *Machine) readReclaim() {
	if text, ok := m.Ad.Str(roost.AttrReclaim); ok {
		m.Reclaim, _ = roost.ParseReclaim(text)
	}
	if !m.units.Reclaims() {
		m.Reclaim = roost.ReclaimOff
	}
	m.units.SetReclaim(false)
	m.split = m.split || m.Reclaim != roost.ReclaimOff
}

// allow says how boldly the cell lets machines reclaim.
func (m *Machine) allow(most roost.Reclaim) {
	if m.Reclaim != roost.ReclaimOff {
		m.units.SetReclaim(m.Reclaim <= most)
	}
}

// allow notes how boldly machines may reclaim. When that changes, those that do begin anew.
func (g *ground) allow(most roost.Reclaim) {
	if most == g.reclaim {
		return
	}
	g.reclaim = most
	for at, m := range g.machines {
		if m.Reclaim != roost.ReclaimOff {
			g.stale = append(g.stale, int32(at))
		}
	}
}

// leftFor is what is free of units for requests of a class, by sums.
func leftFor(f *gpu.Free, c *Class) roost.Resources {
	r := f.LeftFor(c.mayReclaim)
	if c.App == gpu.Stream {
		r.CPU = streamRoom(f, c.mayReclaim)
	}
	return r
}

// streamRoom is the most processor time that a stream task is given in one unit.
func streamRoom(f *gpu.Free, mayReclaim bool) (most roost.MilliCPU) {
	for i := range f.Len() {
		most = max(most, unitRoom(f, i, gpu.Stream, mayReclaim).CPU)
	}
	return most
}

// unitRoom is what a task is given of one unit at most, queues aside.
func unitRoom(f *gpu.Free, i int, app gpu.Class, mayReclaim bool) roost.Resources {
	if !mayReclaim {
		return f.UnitFree(i, app)
	}
	return atLeast(f.Room(i, app), roost.Resources{})
}
