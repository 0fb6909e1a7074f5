package match

import (
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// hunt is what a want knows of whom it could displace.
type hunt struct {
	prey   quarries // by what it costs at least
	known  quarries // by what it costs
	on     *terrain
	opened bool
	all    bool // all machines were looked at
	failed bool // nobody can be displaced: nor can anybody later in the plan
	awaits int  // units that wait for room that is being made
	looked int  // how many of the plan's stages were looked at for that
}

// shape is what those units have in common for which the same claims would have to go on a machine.
type shape struct {
	resources roost.Resources
	app       gpu.Class
	top       roost.Band // they may displace claims up to it
}

// terrain is what was found out in a plan about making room for units of one shape: it serves all wants of that shape. As machines only fill up within a
// plan, and budgets are only spent, it never costs less later; so what is out of date is still what it costs at least.
type terrain struct {
	machines int
	few      map[int32]*spot // by machine, until there are many
	spots    []spot          // by machine, then
	victims  []int32
}

// fewSpots is of how many machines something is kept in a map: after a small change no more are looked at, however large the cell is.
const fewSpots = 64

// spot is what is known of one machine.
func (t *terrain) spot(at int) *spot {
	if t.spots != nil {
		return &t.spots[at]
	}
	if s := t.few[int32(at)]; s != nil {
		return s
	}
	if len(t.few) < fewSpots {
		s := &spot{}
		t.few[int32(at)] = s
		return s
	}
	t.spots = make([]spot, t.machines)
	for i, s := range t.few {
		t.spots[i] = *s
	}
	t.few = nil
	return &t.spots[at]
}

// spot is what it costs to make room on one machine.
type spot struct {
	cost       cost
	first, end int32 // terrain.victims[first:end] would go
	version    int32 // of the machine, when it was weighed
	state      spotState
}

type spotState uint8

const (
	unseen   spotState = iota
	hopeless           // no room can be made
	bounded            // cost is the least that it may cost
	weighed            // cost is what it costs
)

// maxTerrains bounds how many shapes are remembered: each takes some 40 bytes a machine.
const maxTerrains = 32

// terrain is what is known of the machines for a want. By fair share each displaces others than the next; and what a gang sees may be taken back.
func (p *plan) terrain(w *want) *terrain {
	s, shared := shape{w.Class.Resources, w.Class.App, p.top(w)}, p.lasting(w) && w.Gang <= 1
	if t := p.terrains[s]; t != nil && shared {
		return t
	}
	t := &terrain{machines: len(p.Machines), few: map[int32]*spot{}}
	if shared {
		if p.terrains == nil || len(p.terrains) >= maxTerrains {
			p.terrains = map[shape]*terrain{}
		}
		p.terrains[s] = t
	}
	return t
}

// maxWeighed bounds how many machines are weighed for one unit when there is one already that will do: those that could be the best come first, so
// what the bound costs is little, and it is what makes large pools fast (Borg §3.4 stops looking in the same way).
const maxWeighed = 32

// quarry is the machine on which it hurts least to make room for a unit, and whom; nil for nobody.
func (p *plan) quarry(w *want) (at int, victims []int32) {
	h := &w.hunt
	if !h.opened {
		h.opened, h.on = true, p.terrain(w)
		p.track(w)
		h.prey.make()
		h.known.make()
	}
	for tried := 0; ; tried++ {
		p.settle(w)
		if len(h.known) > 0 && (len(h.prey) == 0 || !h.prey[0].before(&h.known[0]) || tried >= maxWeighed && h.prey[0].rank <= h.known[0].rank) {
			s := h.on.spot(int(h.known[0].at))
			return int(h.known[0].at), h.on.victims[s.first:s.end]
		}
		if len(h.prey) == 0 {
			return 0, nil
		}
		q := h.prey[0]
		h.prey.pop()
		if s := p.weighed(w, int(q.at)); s != nil {
			q.cost = s.cost
			h.known.push(q)
		}
	}
}

// settle sees to it that what the first of the known machines costs is still so.
func (p *plan) settle(w *want) {
	known := &w.hunt.known
	for len(*known) > 0 {
		first := &(*known)[0]
		switch s := p.weighed(w, int(first.at)); {
		case s == nil:
			known.pop()
		case s.cost != first.cost:
			first.cost = s.cost
			known.down(0)
		default:
			return
		}
	}
}

// weighed is what it costs to make room on a machine as it is now; nil if none can be made.
func (p *plan) weighed(w *want, at int) *spot {
	t := w.hunt.on
	s := t.spot(at)
	if s.state == hopeless || p.occupied(w, at) {
		return nil
	}
	if s.state == weighed && s.version == p.versions[at] && p.affords(p.Machines[at], t.victims[s.first:s.end]) {
		return s
	}
	if s.state, s.version = hopeless, p.versions[at]; !p.weigh(w, at) {
		return nil
	}
	s.state, s.cost, s.first = weighed, p.search.price, int32(len(t.victims))
	t.victims = p.search.chosen(t.victims)
	s.end = int32(len(t.victims))
	if !p.affords(p.Machines[at], t.victims[s.first:]) {
		s.state = hopeless
		return nil
	}
	return s
}

// track lists the machines where it may be possible to make room. A want that could not displace anybody in the last plan looks only where something
// has changed since, as it does for room (see barren.go).
func (p *plan) track(w *want) {
	b, top := w.Class.spared, p.top(w)
	if b.plan == 0 || w.Gang > 1 || !p.lasting(w) || w.Class.of != p.Matcher || len(w.Avoid) > 0 || p.Now.Before(b.looked) || p.Now.Sub(b.looked) >= lookAgain {
		w.hunt.all = true
		for at := range p.Machines {
			p.sight(w, at, top)
		}
		return
	}
	if b.plan == p.cycle-1 {
		for _, at := range p.fresh {
			p.sight(w, int(at), top)
		}
		return
	}
	for at, began := range p.stamp {
		if began > b.plan {
			p.sight(w, at, top)
		}
	}
}

// sight adds a machine to those where it may be possible to make room.
func (p *plan) sight(w *want, at int, top roost.Band) {
	if !p.prey[at] {
		return
	}
	if top == roost.Batch && !w.Band.Prod() && !p.equals(p.Machines[at]) {
		top = roost.Free
	}
	s := w.hunt.on.spot(at)
	if s.state == unseen {
		s.state = hopeless
		if least, ok := p.atLeast(w, at, top); ok {
			s.state, s.cost = bounded, least
		}
	}
	m := p.Machines[at]
	if s.state == hopeless || w.Avoid[m.Name] != "" || !p.clear(w, at) {
		return
	}
	if rank, ok := p.query(w.Class).Match(m.row, &p.env); ok {
		q := quarry{rank: usable(rank), cost: s.cost, at: int32(at)}
		if s.state == weighed {
			w.hunt.known = append(w.hunt.known, q)
		} else {
			w.hunt.prey = append(w.hunt.prey, q)
		}
	}
}

// atLeast is what it costs at least to make room on a machine; not ok if even all that may be evicted would not be enough.
func (p *plan) atLeast(w *want, at int, top roost.Band) (least cost, ok bool) {
	m, r, app := p.Machines[at], w.Class.Resources, w.Class.App
	cpu, memory := p.sums(app, at)
	for band := roost.Free; band <= top; band++ {
		l := &m.prey[band]
		if l.claims == 0 || r.CPU > cpu+l.cpu[app] || r.Memory > memory+l.memory {
			continue
		}
		if band == roost.Batch {
			least.batch = 1
			least.lost = p.leastLost(m, band, 1)
			return least, true
		}
		least.free = max(1, steps(r.CPU-cpu, l.most[app]), steps(r.Memory-memory, l.ample))
		least.lost = p.leastLost(m, band, least.free)
		return least, true
	}
	return cost{}, false
}

// leastLost is how much work is lost at least if so many claims of a band go.
func (p *plan) leastLost(m *Machine, band roost.Band, n int) (sum int64) {
	if n > 1 {
		p.lost = p.lost[:0]
		for i := range m.Claims {
			if c := &m.Claims[i]; c.Band == band && !c.Leaving {
				p.lost = append(p.lost, c.lost(p.now))
			}
		}
		slices.Sort(p.lost)
		for _, lost := range p.lost[:min(n, len(p.lost))] {
			sum += lost
		}
		return sum
	}
	least := int64(1) << 62
	for i := range m.Claims {
		if c := &m.Claims[i]; c.Band == band && !c.Leaving {
			least = min(least, c.lost(p.now))
		}
	}
	return least
}

// lasting reports whether it hangs on machines alone whom a want may displace: not on how submitters stand, nor on what machines say of them.
func (p *plan) lasting(w *want) bool {
	return w.Band.Prod() || !p.equals(nil)
}

// leaveAlone notes that a want can displace nobody, for the next plan.
func (p *plan) leaveAlone(w *want) {
	w.hunt.failed = true
	w.hunt.end()
	b := &w.Class.spared
	if p.exhausted() || w.left != w.Wanted || !p.lasting(w) {
		b.plan = 0
		return
	}
	b.plan = p.cycle
	if w.hunt.all {
		b.looked = p.Now
	}
}

// end gives back the memory of a hunt that is over.
func (h *hunt) end() { h.prey, h.known, h.on, h.opened = nil, nil, nil, false }

// top is the highest band that a want may displace.
func (p *plan) top(w *want) roost.Band { return p.topOf(w.Band) }

// clear reports whether nothing is held of a machine that a want would have to mind.
func (p *plan) clear(w *want, at int) bool {
	if !p.within(w, at) {
		return false
	}
	f := p.futures[at]
	return f == nil || !slices.ContainsFunc(f.holds, func(h hold) bool { return !h.entitled(w) })
}
