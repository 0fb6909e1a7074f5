package match

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/timeline"
)

// A unit that has its machine alone is placed on one of which nothing is taken, promised
// or held for others, and then takes all of it: so nobody finds room beside it, whoever
// looks, be it this plan, a later one, another negotiator or the machine itself. What it
// asks for only says which machines will do. It displaces nobody, and does not wait in a
// queue.

// unitUsage is what a unit of a class takes of a machine.
func (p *negotiationCycle) unitUsage(c *RequestClass, at int) roost.Resources {
	if c.Exclusive {
		return p.Machines[at].Total
	}
	return c.Resources
}

// isEmpty reports whether nothing of a machine is taken or promised.
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

// takeExclusive takes all of a vacant machine.
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

// freeForExclusive is how a want counts what is free of a machine in time to come: who
// has machines alone finds room for a unit where all is free, and nowhere else.
func (p *negotiationCycle) freeForExclusive(w *requestState, at int, free roost.Resources) roost.Resources {
	if !w.Class.Exclusive {
		return free
	}
	return free.Sub(p.Machines[at].Total).Add(unitsWeight(w.Class.minimumSums, w.Class.AppClass, 1))
}

// reservedAmount is what is held of a machine for so many units of a want.
func (p *negotiationCycle) reservedAmount(w *requestState, at, units int,
	from, until timeline.UnixSeconds) timeline.Reservation {
	return timeline.Reservation{From: from, Until: until,
		Resources: multiplied(unitsWeight(p.unitUsage(w.Class, at), w.Class.AppClass, 1), units)}
}
