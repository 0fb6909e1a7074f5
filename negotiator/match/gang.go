package match

import (
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// A gang is so many units of a request that start together, on one machine or on several, or not at all. Its units are placed one after another like
// any others; should one of them find no place, all that was taken for those before it is given back. Whoever gets half of a gang could do nothing with
// it, and two halves of two gangs would keep each other waiting for ever.

// undo is what there was before something was placed for a gang.
type undo struct {
	grants int
	stages int
	spare  roost.Resources
	held   float64 // by its submitter
	group  float64 // by that one's group
	parts  []before

	evictions []eviction
}

// before is how a machine stood.
type before struct {
	at     int
	free   roost.Resources
	stream roost.MilliCPU
	units  *gpu.Free
	future *future
}

// gang places one gang of a want that may take its turn, and reports whether it could.
func (p *plan) gang(w *want) bool {
	defer p.dismiss(w)
	if n := p.allowedGang(w); n < w.Gang {
		if n > 0 && w.Explain {
			w.held, w.heldBy = fmt.Sprintf("its %d tasks start together, and only %d may start now", w.Gang, n), Rationed
		}
		return false
	}
	room := 0
	if w.left >= w.Gang {
		if room = p.roomForGang(w); room >= w.Gang {
			if room = p.placeWithin(w); room >= w.Gang {
				return true
			}
		}
		if p.muster(w) {
			return true
		}
	}
	w.barren, w.keptOff, w.held = true, true, "" // one machine more may be what is missing
	if w.Explain {
		w.heldBy = Whole
		if w.held = fmt.Sprintf("its %d tasks start together or not at all%s", w.Gang, w.apart()); room > 0 {
			w.held += fmt.Sprintf(", and when its turn came there was room for %d", room)
		}
		if w.mixed() && w.short != nil {
			w.held += fmt.Sprintf("; what finds none asks for %v", w.short.Class.Resources)
		}
	}
	p.blocked(w)
	return false
}

// apart says of a gang whose tasks may not share a machine that it is one.
func (w *want) apart() string {
	if w.Class.Together != "" {
		return w.onMachines() + ", where " + w.Class.Together + " is the same"
	}
	return w.onMachines()
}

func (w *want) onMachines() string {
	switch {
	case w.Class.Alone:
		return ", on a machine each that they have alone"
	case w.Class.Apart:
		return ", on a machine each"
	}
	return ""
}

// beginGang notes how things are before anything is placed for a gang.
func (p *plan) beginGang(w *want) {
	p.gangs++
	w.gang = p.gangs
	p.undo = &undo{grants: len(p.out.Grants), stages: len(p.stages), spare: p.spare, held: w.account.held}
	for i := range w.cast {
		w.cast[i].gang, w.cast[i].had = w.gang, w.cast[i].left
	}
	if g := w.account.group; g != nil {
		p.undo.group = g.held
	}
}

// placeGang places all units of a gang, or none, and returns for how many there is room.
func (p *plan) placeGang(w *want) (room int) {
	p.beginGang(w)
	for _, c := range w.cast {
		for n := 0; n < c.units; {
			at, ok := p.best(c.want)
			if !ok {
				w.short = c.want
				p.rollBack(w)
				return room
			}
			p.undo.note(p, at)
			took := p.place(c.want, at, c.units-n)
			n, room = n+took, room+took
		}
	}
	p.gathered(w)
	return room
}

// gathered notes that all units of a gang have their places. Machines that it kept to itself are there for the next one of the want.
func (p *plan) gathered(w *want) {
	parts := p.undo.parts
	p.undo = nil
	w.useOnce()
	if w.mixed() {
		w.left -= w.Gang
	}
	if w.Class.Apart && w.left > 0 {
		for _, b := range parts {
			p.changed(b.at)
		}
	}
}

// roomForGang is for how many units of a gang there may be room, or the whole of it. Most that find none are not worth the trying.
func (p *plan) roomForGang(w *want) (room int) {
	for _, c := range w.cast {
		n := p.roomForPart(&c)
		if room += n; n < c.units {
			w.short = c.want
			return room
		}
	}
	return room
}

func (p *plan) roomForPart(c *section) (room int) {
	w := c.want
	if _, ok := p.best(w); !ok {
		return 0
	}
	for _, on := range w.heap.list {
		if on.version == p.versions[on.at] {
			if room += w.here(max(1, w.Class.sums.Times(p.room(w.Class, int(on.at))))); room >= c.units {
				return c.units
			}
		}
	}
	return room
}

// here is how many of n units of a want may be on one machine.
func (w *want) here(n int) int {
	if w.Class.Alone || w.Class.Apart && w.Gang > 1 {
		return min(n, 1)
	}
	return n
}

// occupied reports whether a machine has a unit of the gang that is being placed, and may have no other.
func (p *plan) occupied(w *want, at int) bool {
	return w.Class.Apart && p.undo != nil && slices.ContainsFunc(p.undo.parts, func(b before) bool { return b.at == at })
}

// note keeps how a machine stands.
func (u *undo) note(p *plan, at int) {
	b := before{at: at, free: p.free[at], stream: p.stream[at]}
	if f := p.splitAt(at); f != nil {
		b.units = f
		if f != p.Machines[at].units {
			b.units = f.Clone()
		}
	}
	if f := p.futures[at]; f != nil {
		b.future = f.clone()
	}
	u.parts = append(u.parts, b)
}

// rollBack takes a gang back of which not all could be placed.
func (p *plan) rollBack(w *want) {
	u := p.undo
	p.undo = nil
	p.spareAll(u)
	for _, c := range w.cast {
		c.hunt.end()
	}
	for _, b := range slices.Backward(u.parts) {
		p.free[b.at], p.stream[b.at] = b.free, b.stream
		if b.units != nil {
			p.units[b.at] = b.units
		}
		if b.future != nil {
			p.futures[b.at] = b.future
		}
		p.changed(b.at)
	}
	for _, c := range w.cast {
		p.use(c.want, c.left-c.had)
		c.left, c.domains = c.had, nil // counted anew when it is looked at
	}
	w.account.held = u.held // to the bit
	if g := w.account.group; g != nil {
		g.held = u.group
	}
	p.spare, p.out.Grants = u.spare, p.out.Grants[:u.grants]
}
