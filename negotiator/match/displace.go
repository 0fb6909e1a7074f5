package match

import "github.com/roost-batch/roost"

// A gang that finds no room may displace lower bands as single units do, but only if the whole of it starts by that: its units take what is free first, then
// for each of the rest those go of whom it hurts least that they go. If it is not enough nobody goes. The naive way, to make room unit by unit as for
// others, would stop the work of many for a gang that may never be whole.
//
// A gang waits for room that is being made already if that is enough with what is free. If it is not, that room is no use to it now, for all its
// claims have to be there at once.

// muster displaces claims for one gang of a want, and reports whether all of it has room then.
func (p *plan) muster(w *want) bool {
	b := &w.Class.spared
	if w.Band == roost.Free || w.Class.Alone || w.Class.Together != "" || p.exhausted() || p.triedLately(w) || !p.musterable(w) {
		return false
	}
	p.openStages()
	p.beginGang(w)
	for i := range w.cast {
		c := &w.cast[i]
		for c.lacks = c.units; c.lacks > 0; {
			at, ok := p.best(c.want)
			if !ok {
				break
			}
			p.undo.note(p, at)
			c.lacks -= p.place(c.want, at, c.lacks)
		}
	}
	if p.awaitGang(w) {
		p.rollBack(w)
		w.hunt.awaits = w.Gang
		return false
	}
	for _, c := range w.cast {
		for ; c.lacks > 0; c.lacks-- {
			at, victims := 0, []int32(nil)
			if !p.exhausted() {
				at, victims = p.quarry(c.want)
			}
			if victims == nil {
				p.rollBack(w)
				b.plan, b.looked = p.cycle, p.Now
				return false
			}
			p.undo.note(p, at)
			p.evict(c.want, at, victims)
		}
		c.hunt.end() // what it knows is of a time when it had less
	}
	p.gathered(w)
	b.plan = 0
	return true
}

// triedLately reports whether a gang could make no room a moment ago. To find that out anew in each cycle would cost too much.
func (p *plan) triedLately(w *want) bool {
	b := &w.Class.spared
	return b.plan != 0 && w.Class.of == p.Matcher && !p.Now.Before(b.looked) && p.Now.Sub(b.looked) < lookAgain
}

// musterable reports whether the sums of machines leave it possible that a gang fits if all are displaced that may be.
func (p *plan) musterable(w *want) bool {
	prey := false
	for _, c := range w.cast {
		enough, some := p.musterablePart(c.want, c.units)
		if prey = prey || some; !enough {
			return false
		}
	}
	return prey
}

// musterablePart is musterable for so many units that ask for the same, and says whether anybody could be displaced where they would be.
func (p *plan) musterablePart(w *want, wanted int) (enough, prey bool) {
	app, top, units := w.Class.App, p.top(w), 0
	one := roost.Resources{CPU: w.Class.Resources.CPU, Memory: w.Class.Resources.Memory}
	for at, m := range p.Machines {
		if m.drained {
			continue
		}
		cpu, memory := p.sums(app, at)
		room, l := p.room(w.Class, at), &m.prey[top]
		most := roost.Resources{CPU: max(cpu, room.CPU) + l.cpu[app], Memory: max(memory, room.Memory) + l.memory}
		prey = prey || l.claims > 0
		if units += w.here(max(0, one.Times(most))); units >= wanted && prey {
			return true, true
		}
	}
	return units >= wanted, prey
}

// awaitGang reports whether what a gang lacks finds room once those have left that are leaving already.
func (p *plan) awaitGang(w *want) bool {
	type mark struct{ at, takes int }
	var marks []mark
	for _, at := range p.stages {
		marks = append(marks, mark{at, len(p.scenes[at].takes)})
	}
	all := true
	for _, c := range w.cast {
		found := 0
		for all && found < c.lacks && p.await(c.want) {
			found++
		}
		c.hunt.looked = 0
		all = all && found == c.lacks
	}
	if all {
		return true
	}
	for _, m := range marks {
		s := p.scenes[m.at]
		s.takes = s.takes[:m.takes]
	}
	return false
}

// eviction is what there was at a machine before claims were chosen there for a gang.
type eviction struct {
	scene        *scene
	gives, takes int
	chosen       []*Claim
}

// chose notes whom a gang displaces, so that it can be taken back.
func (u *undo) chose(s *scene, m *Machine, victims []int32) {
	if u == nil {
		return
	}
	e := eviction{scene: s, gives: len(s.gives), takes: len(s.takes)}
	for _, i := range victims {
		e.chosen = append(e.chosen, &m.Claims[i])
	}
	u.evictions = append(u.evictions, e)
}

// spareAll takes back whom a gang would have displaced.
func (p *plan) spareAll(u *undo) {
	for i := len(u.evictions) - 1; i >= 0; i-- {
		e := &u.evictions[i]
		e.scene.gives, e.scene.takes = e.scene.gives[:e.gives], e.scene.takes[:e.takes]
		for _, c := range e.chosen {
			delete(e.scene.used, c.ID)
			p.unspend(c)
		}
	}
	if len(u.evictions) > 0 {
		p.stages = p.stages[:u.stages]
	}
}
