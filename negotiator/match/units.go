package match

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// A machine of one resource unit without devices is a vector of sums, and so is one that says nothing of units. On any other, sums lie: eight
// cores free may be four in each of two units, and a GPU may be half free. Of such a machine the plan keeps a copy of what is free by unit and
// by device, made when something is first placed there, and asks it where a request would go.

// Promise is what was promised of a machine and does not show in its ad yet.
type Promise struct {
	Request   Key // for which it was
	Resources roost.Resources
	Class     gpu.Class
	NonProd   bool // it may be in what others leave
	Waiting   bool // it is a place in the queue of Unit: the resources are not taken
	Unit      int
	Victims   []uint64 // claims that go for it
	Ends      int64    // unix seconds: when it ends if it is claimed; 0: nobody knows
}

// readUnits notes what the ad says of units. An ad whose units make no sense is a machine of which nothing is free.
func (m *Machine) readUnits() {
	if _, ok := m.Ad.Lookup(roost.AttrUnits); !ok {
		m.stream = m.Free.CPU
		return
	}
	f, err := gpu.Read(m.Ad)
	if err != nil {
		m.Free = roost.Resources{}
		return
	}
	m.units, m.Free = f, f.Left()
	m.Total = atLeast(f.Total(), m.Free)
	for i := range f.Len() {
		q := f.Queue(i)
		m.stream = max(m.stream, f.UnitFree(i, gpu.Stream).CPU)
		m.split = m.split || q.RunLimit > 0 || q.Shut()
		m.room = m.room || q.Room > 0
	}
	m.split = m.split || f.Len() > 1 || len(f.Devices()) > 0
	m.readReclaim()
}

func (p *plan) beginSplit(at int, m *Machine, promised []Promise) {
	m.allow(p.Reclaim)
	p.units[at] = m.units
	for _, one := range promised {
		if one.Waiting {
			continue
		}
		if len(one.Victims) > 0 {
			p.beginHeir(at, &one)
			continue
		}
		if whole, ok := p.units[at].Whole(); ok && m.Total.Fits(one.Resources) {
			p.spot = whole
			p.take(at)
		} else if r := (gpu.Request{Resources: one.Resources, Class: one.Class, MayReclaim: one.NonProd}); p.units[at].Find(r, gpu.Anywhere, &p.spot) {
			p.take(at)
		}
	}
	p.sum(at)
}

// own is the copy of a machine's units that this plan may change.
func (p *plan) own(at int) *gpu.Free {
	if p.units[at] == p.Machines[at].units {
		p.units[at] = p.units[at].Clone()
	}
	return p.units[at]
}

// sum notes the sums of a machine of several units.
func (p *plan) sum(at int) {
	f := p.units[at]
	p.free[at], p.stream[at] = atLeast(f.Left(), f.LeftFor(true)), max(streamRoom(f, false), streamRoom(f, true))
}

// take takes p.spot.
func (p *plan) take(at int) {
	f := p.own(at)
	f.Take(p.spot)
	if p.spot.Class != gpu.Batch {
		return
	}
	for _, part := range p.spot.Parts {
		q := f.Queue(part.Unit)
		q.Running++
		f.SetQueue(part.Unit, q)
	}
}

// splitAt is what is free of a machine by its units, nil if its sums say all.
func (p *plan) splitAt(at int) *gpu.Free { return p.units[at] }

// subtract takes resources off the sums of a machine. Stream tasks take the processor time of batch tasks, which have the rest of it later: what
// batch may be given stays the same.
func (p *plan) subtract(at int, r roost.Resources, class gpu.Class) {
	if class == gpu.Stream {
		p.stream[at] -= r.CPU
		r.CPU = 0
	}
	p.free[at] = p.free[at].Sub(r)
}

// room is what a class can be given of a machine, by its sums.
func (p *plan) room(c *Class, at int) roost.Resources {
	if f := p.splitAt(at); f != nil && f.Reclaims() {
		return leftFor(f, c)
	}
	free := p.free[at]
	if c.App == gpu.Stream {
		free.CPU = p.stream[at]
	}
	return free
}

// fits reports whether a unit of a class fits on a machine, and how badly it would sit there.
func (p *plan) fits(c *Class, at int) (badness float64, ok bool) {
	f := p.splitAt(at)
	if c.Alone && !p.vacant(at) {
		return 0, false
	}
	if f == nil {
		free := p.room(c, at)
		if !c.Resources.Fits(free) || c.Resources.GPUMemory > 0 {
			return 0, false
		}
		return p.badness(c, at, nil), true
	}
	if c.App == gpu.Batch && !c.sums.Fits(p.free[at]) || !f.Find(c.request(), gpu.Anywhere, &p.spot) {
		return 0, false
	}
	return p.badness(c, at, f), true
}

// putUnits puts up to n units of a class on a machine of several units, and returns how many found room.
func (p *plan) putUnits(c *Class, at, n int) (put int) {
	for put < n && p.units[at].Find(c.request(), gpu.Anywhere, &p.spot) {
		p.take(at)
		put++
	}
	p.sum(at)
	return put
}
