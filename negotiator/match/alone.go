package match

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/forecast"
)

// A unit that has its machine alone is placed on one of which nothing is taken, promised or held for others, and then takes all of it: so nobody finds room
// beside it, whoever looks, be it this plan, a later one, another negotiator or the machine itself. What it asks for only says which machines will do. It
// displaces nobody, and does not wait in a queue.

// takes is what a unit of a class takes of a machine.
func (p *plan) takes(c *Class, at int) roost.Resources {
	if c.Alone {
		return p.Machines[at].Total
	}
	return c.Resources
}

// vacant reports whether nothing of a machine is taken or promised.
func (p *plan) vacant(at int) bool {
	m := p.Machines[at]
	if len(m.Claims) > 0 || m.Unclear != nil {
		return false
	}
	if f := p.splitAt(at); f != nil {
		return f.Idle()
	}
	return p.free[at] == m.Total && p.stream[at] >= m.Total.CPU
}

// takeWhole takes all of a vacant machine.
func (p *plan) takeWhole(at int) {
	f := p.splitAt(at)
	if f == nil {
		p.free[at], p.stream[at] = roost.Resources{}, 0
		return
	}
	p.spot, _ = f.Whole()
	p.take(at)
	p.sum(at)
}

// seen is how a want counts what is free of a machine in time to come: who has machines alone finds room for a unit where all is free, and nowhere else.
func (p *plan) seen(w *want, at int, free roost.Resources) roost.Resources {
	if !w.Class.Alone {
		return free
	}
	return free.Sub(p.Machines[at].Total).Add(weight(w.Class.sums, w.Class.App, 1))
}

// holdOf is what is held of a machine for so many units of a want.
func (p *plan) holdOf(w *want, at, units int, from, until forecast.Seconds) forecast.Hold {
	return forecast.Hold{From: from, Until: until, Resources: times(weight(p.takes(w.Class, at), w.Class.App, 1), units)}
}
