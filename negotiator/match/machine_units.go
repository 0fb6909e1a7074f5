package match

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// A machine of one resource unit without devices is a vector of sums, and so is one that
// does not describe its units. On any other machine sums are not exact: eight free cores
// may be four in each of two units, and a GPU may be half free. For such a machine the
// cycle uses what is free by unit and by device, and copies it when it first places
// something there.

// PendingGrant is a grant that the machine's ad does not show yet.
type PendingGrant struct {
	Request     RequestKey // the request that it was granted to
	Resources   roost.Resources
	Class       gpu.AppClass
	MayReclaim  bool // it may use reclaimed resources
	Waiting     bool // it is a place in the node queue of Unit: the resources are not taken
	Unit        int
	Victims     []uint64 // claims that are evicted for it
	Ports       []uint16 // with numbers of their own that it takes
	WalltimeEnd int64    // unix seconds: when it ends if it is claimed; 0: unknown
}

// readUnits reads the resource units of the ad. If they are invalid, nothing of the
// machine is free.
func (m *Machine) readUnits() {
	if _, ok := m.Ad.Lookup(roost.AttrUnits); !ok {
		m.streamFree = m.Free.CPU
		return
	}
	f, err := gpu.ReadAd(m.Ad)
	if err != nil {
		m.Free = roost.Resources{}
		return
	}
	m.units, m.Free = f, f.LeftForBatch()
	m.Total = maxResources(f.Total(), m.Free)
	for i := range f.Len() {
		q := f.Queue(i)
		m.streamFree = max(m.streamFree, f.UnitFree(i, gpu.StreamClass).CPU)
		m.freeByUnit = m.freeByUnit || q.RunLimit > 0 || q.IsClosed()
		m.acceptsQueued = m.acceptsQueued || q.FreePlaces > 0
	}
	m.freeByUnit = m.freeByUnit || f.Len() > 1 || len(f.Devices()) > 0
	m.readReclaim()
}

func (p *negotiationCycle) resetUnits(at int, m *Machine, pendingCount []PendingGrant) {
	m.setReclaimLevel(p.Reclaim)
	p.units[at] = m.units
	for _, one := range pendingCount {
		if one.Waiting {
			continue
		}
		if len(one.Victims) > 0 {
			p.preemption().reserveForPreemptor(at, &one)
			continue
		}
		if whole, ok := p.units[at].WholeMachine(); ok && m.Total.FitsIn(one.Resources) {
			p.lastPlacement = whole
			p.takePlacement(at)
		} else if r := (gpu.DeviceRequest{Resources: one.Resources, Class: one.Class,
			MayReclaim: one.MayReclaim}); p.units[at].FindPlacement(r, gpu.AnyUnit, &p.lastPlacement) {
			p.takePlacement(at)
		}
	}
	p.updateSums(at)
}

// mutableUnits returns the copy of a machine's units that this cycle may change.
func (p *negotiationCycle) mutableUnits(at int) *gpu.FreeResources {
	if p.units[at] == p.Machines[at].units {
		p.units[at] = p.units[at].Clone()
	}
	return p.units[at]
}

// updateSums computes the sums of a machine of several units.
func (p *negotiationCycle) updateSums(at int) {
	f := p.units[at]
	p.free[at], p.streamFree[at] = maxResources(f.LeftForBatch(), f.LeftForRequest(true)),
		max(maxStreamCPU(f, false), maxStreamCPU(f, true))
}

// takePlacement takes p.lastPlacement from the machine.
func (p *negotiationCycle) takePlacement(at int) {
	f := p.mutableUnits(at)
	f.TakePlacement(p.lastPlacement)
	if p.lastPlacement.Class != gpu.BatchClass {
		return
	}
	for _, part := range p.lastPlacement.Parts {
		q := f.Queue(part.Unit)
		q.Running++
		f.SetQueue(part.Unit, q)
	}
}

// unitsFreeAt returns what is free of a machine by unit, nil if its sums are exact.
func (p *negotiationCycle) unitsFreeAt(at int) *gpu.FreeResources { return p.units[at] }

// subtractSums subtracts resources from the sums of a machine. Stream tasks share the CPU
// of batch tasks, which get the rest of it, so what batch can get stays the same.
func (p *negotiationCycle) subtractSums(at int, r roost.Resources, class gpu.AppClass) {
	if class == gpu.StreamClass {
		p.streamFree[at] -= r.CPU
		r.CPU = 0
	}
	p.free[at] = p.free[at].Sub(r)
}

// roomBySums returns what a class can get of a machine, by its sums.
func (p *negotiationCycle) roomBySums(c *RequestClass, at int) roost.Resources {
	if f := p.unitsFreeAt(at); f != nil && f.IsReclaiming() {
		return freeForClass(f, c)
	}
	free := p.free[at]
	if c.AppClass == gpu.StreamClass {
		free.CPU = p.streamFree[at]
	}
	return free
}

// fitAndScore reports whether a unit of a class fits on a machine, and its score there;
// lower is better.
func (p *negotiationCycle) fitAndScore(c *RequestClass, at int) (badness float64, ok bool) {
	f := p.unitsFreeAt(at)
	if c.Exclusive && !p.isEmpty(at) || p.portConflict(c, at) != 0 {
		return 0, false
	}
	if f == nil {
		free := p.roomBySums(c, at)
		if !c.Resources.FitsIn(free) || c.Resources.GPUMemory > 0 {
			return 0, false
		}
		return p.placementScore(c, at, nil), true
	}
	if c.AppClass == gpu.BatchClass && !c.minimumSums.FitsIn(p.free[at]) ||
		!f.FindPlacement(c.deviceRequest(), gpu.AnyUnit, &p.lastPlacement) {
		return 0, false
	}
	return p.placementScore(c, at, f), true
}

// placeOnUnits places up to n units of a class on a machine of several units. It returns
// how many found room.
func (p *negotiationCycle) placeOnUnits(c *RequestClass, at, n int) (put int) {
	for put < n && p.units[at].FindPlacement(c.deviceRequest(), gpu.AnyUnit, &p.lastPlacement) {
		p.takePlacement(at)
		put++
	}
	p.updateSums(at)
	return put
}
