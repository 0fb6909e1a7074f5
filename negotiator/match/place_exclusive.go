package match

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/timeline"
)

// An exclusive unit is placed on a machine of which nothing is taken, granted or reserved
// for others, and takes all of it. So nothing else finds room beside it in this plan, in
// a later one, at another negotiator or at the machine itself. The resources that it asks
// for only decide which machines are large enough. It preempts nothing and does not wait
// in a node queue.

// unitUsage returns what a unit of a class takes of a machine.
func (p *negotiationCycle) unitUsage(c *RequestClass, at int) roost.Resources {
	if c.Exclusive {
		return p.Machines[at].Total
	}
	return c.Resources
}

// isEmpty reports whether nothing of a machine is taken or granted.
func (p *negotiationCycle) isEmpty(at int) bool {
	m := p.Machines[at]
	if len(m.Claims) > 0 || m.ClaimsUnknown != nil {
		return false
	}
	if f := p.unitsFreeAt(at); f != nil {
		return f.IsIdle()
	}
	return p.free[at] == m.Total && p.streamFree[at] >= m.Total.CPU
}

// takeExclusive takes all of an empty machine.
func (p *negotiationCycle) takeExclusive(at int) {
	f := p.unitsFreeAt(at)
	if f == nil {
		p.free[at], p.streamFree[at] = roost.Resources{}, 0
		return
	}
	p.lastPlacement, _ = f.WholeMachine()
	p.takePlacement(at)
	p.updateSums(at)
}

// freeForExclusive converts what will be free of a machine into what a request can use.
// An exclusive request can use it only where the whole machine is free.
func (p *negotiationCycle) freeForExclusive(w *requestState, at int, free roost.Resources) roost.Resources {
	if !w.Class.Exclusive {
		return free
	}
	return free.Sub(p.Machines[at].Total).Add(unitsWeight(w.Class.minimumSums, w.Class.AppClass, 1))
}

// reservedAmount returns the reservation of a machine for some units of a request.
func (p *negotiationCycle) reservedAmount(w *requestState, at, units int,
	from, until timeline.UnixSeconds) timeline.Reservation {
	return timeline.Reservation{From: from, Until: until,
		Resources: multiplied(unitsWeight(p.unitUsage(w.Class, at), w.Class.AppClass, 1), units)}
}
