package match

import (
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
)

// ground is how the machines stand before a plan places anything: kept from one plan to the next, and brought up to date where something has
// changed, so that a cycle costs what has changed and not what there is. A plan changes it where it places something; those machines begin anew with
// the next plan. Whoever changes what is free of a machine in a plan says so with touch.
type ground struct {
	machines []*Machine        // of the last snapshot
	free     []roost.Resources // by machine, as yet: what batch requests can be given
	stream   []roost.MilliCPU  // by machine, as yet: what one stream request can be given
	units    []*gpu.Free       // by machine, as yet: nil where free says all
	versions []int32           // by machine: how often something was placed there in this plan
	slot     []int32           // by machine: its number in open, or -1
	open     []int32           // machines that had any CPU free when the plan began
	totals   []roost.Resources // by machine: what it has in all
	drained  []bool            // by machine: nothing is to start there
	queueing []bool            // by machine: more may wait for it
	queuers  int               // of those

	began    []roost.Resources // by machine: what was free when it last began, nothing negative
	stamp    []int             // by machine: the plan in which it last began anew
	stale    []int32           // machines that have to begin anew
	promised []int32           // machines of which something was promised when the last plan was made
	total    roost.Resources   // of the pool
	spare    roost.Resources   // of the pool, as the plan begins
	reclaim  roost.Reclaim     // of the last snapshot
	prey     []bool            // by machine: it has claims that may be displaced
	hunted   int               // of those
	leavers  map[int32]bool    // machines that claims are about to leave
	choosers map[int32]bool    // machines that would rather run another than some of their claims
}

// sync brings the table and the ground up to date with a snapshot. A machine that is the same as in the last plan costs nothing but a look.
func (t *Matcher) sync(p *plan) {
	g := &t.ground
	g.stale = append(g.stale, g.promised...)
	g.promised = g.promised[:0]
	if len(p.Machines) != len(g.machines) || !t.replaced(p.Machines) {
		t.renumber(p.Machines)
	}
	g.allow(p.Reclaim)
	for name := range p.Pending {
		if m := t.byName[name]; m != nil {
			g.promised = append(g.promised, m.at)
		}
	}
	slices.Sort(g.promised) // that the order does not hang on a map's
	g.stale = append(g.stale, g.promised...)
	t.fresh = t.fresh[:0]
	for _, at := range g.stale {
		if g.stamp[at] != t.cycle {
			g.stamp[at] = t.cycle
			t.fresh = append(t.fresh, at)
			t.begin(p, int(at))
		}
	}
	g.stale = g.stale[:0]
}

// replaced takes in machines of which some have new ads; ok is false if others have come or gone.
func (t *Matcher) replaced(machines []*Machine) (ok bool) {
	g, shrunk := &t.ground, false
	for at, m := range machines {
		old := g.machines[at]
		if old == m {
			continue
		}
		if old.Name != m.Name || m.in == t {
			return false
		}
		m.in, old.in = t, nil
		m.row, m.at, m.cycle = old.row, int32(at), t.cycle
		if m.Ad != old.Ad {
			t.table.Set(m.row, m.Ad)
		}
		t.byName[m.Name], t.byRow[m.row] = m, m
		g.total = g.total.Sub(old.Total).Add(m.Total)
		g.machines[at] = m
		g.stale = append(g.stale, int32(at))
		if !t.gpus.replace(old, m) {
			shrunk = true
		}
	}
	if shrunk {
		t.gpus.recount(machines)
	}
	return true
}

// renumber takes in machines of which some have come or gone: all begin anew.
func (t *Matcher) renumber(machines []*Machine) {
	g, n := &t.ground, len(machines)
	for at, m := range machines {
		m.at, m.cycle = int32(at), t.cycle
		if m.in == t {
			continue
		}
		m.in = t
		if old := t.byName[m.Name]; old != nil && old.in == t && old.cycle != t.cycle {
			m.row, old.in = old.row, nil
			t.table.Set(m.row, m.Ad)
		} else {
			m.row = t.table.Add(m.Ad)
		}
		for int(m.row) >= len(t.byRow) {
			t.byRow, t.atRow = append(t.byRow, nil), append(t.atRow, -1)
		}
		t.byName[m.Name], t.byRow[m.row] = m, m
	}
	if t.table.Len() != n {
		t.forget()
	}
	g.machines = append(g.machines[:0], machines...)
	clear(g.machines[n:cap(g.machines)])
	g.free, g.began, g.stream = sized(g.free, n), sized(g.began, n), sized(g.stream, n)
	g.units, g.versions, g.slot = sized(g.units, n), sized(g.versions, n), sized(g.slot, n)
	g.drained, g.totals = sized(g.drained, n), sized(g.totals, n)
	g.queueing, g.stamp = sized(g.queueing, n), sized(g.stamp, n)
	g.prey, g.hunted, g.leavers, g.choosers = sized(g.prey, n), 0, map[int32]bool{}, map[int32]bool{}
	g.open, g.stale, g.queuers, g.total, g.spare = g.open[:0], g.stale[:0], 0, roost.Resources{}, roost.Resources{}
	for at, m := range machines {
		g.slot[at], t.atRow[m.row] = -1, int32(at)
		g.stale = append(g.stale, int32(at))
		g.total = g.total.Add(m.Total)
	}
	t.gpus.recount(machines)
}

// sized is a slice of n zeros, in the memory of the one before if that is enough.
func sized[T any](s []T, n int) []T {
	if cap(s) < n || cap(s) > 4*n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// forget takes machines out of the table that the snapshot does not have.
func (t *Matcher) forget() {
	for row, m := range t.byRow {
		if m != nil && m.cycle != t.cycle {
			t.table.Delete(classad.Row(row))
			t.byRow[row] = nil
			if m.in == t {
				m.in = nil
			}
			if t.byName[m.Name] == m {
				delete(t.byName, m.Name)
			}
		}
	}
}

// begin notes what is free of a machine, what was promised of it taken off.
func (t *Matcher) begin(p *plan, at int) {
	g, m := &t.ground, t.ground.machines[at]
	promised := p.Pending[m.Name]
	g.versions[at], g.units[at], g.drained[at], g.totals[at] = 0, nil, m.drained, m.Total
	prey := m.prey[roost.Batch].claims > 0 && !m.drained
	g.hunted += btoi(prey) - btoi(g.prey[at])
	if g.prey[at] = prey; m.leaves {
		g.leavers[int32(at)] = true
	} else {
		delete(g.leavers, int32(at))
	}
	if m.choosy && !m.drained {
		g.choosers[int32(at)] = true
	} else {
		delete(g.choosers, int32(at))
	}
	if m.split {
		p.beginSplit(at, m, promised)
	} else {
		g.free[at], g.stream[at] = m.Free, m.stream
		for _, one := range promised {
			if len(one.Victims) > 0 {
				p.beginHeir(at, &one)
			} else if !one.Waiting {
				p.subtract(at, one.Resources, one.Class)
			}
		}
	}
	g.spare = g.spare.Sub(g.began[at])
	g.began[at] = atLeast(g.free[at], roost.Resources{})
	g.spare = g.spare.Add(g.began[at])
	if room := m.room && !m.drained; room != g.queueing[at] {
		g.queueing[at] = room
		if g.queuers--; room {
			g.queuers += 2
		}
	}
	g.openUp(at, g.free[at].CPU > 0 || g.stream[at] > 0)
}

// openUp puts a machine among the open ones, or takes it out. Their order means nothing.
func (g *ground) openUp(at int, open bool) {
	slot := g.slot[at]
	switch {
	case open && slot < 0:
		g.slot[at] = int32(len(g.open))
		g.open = append(g.open, int32(at))
	case !open && slot >= 0:
		last := g.open[len(g.open)-1]
		g.open[slot], g.slot[last] = last, slot
		g.open, g.slot[at] = g.open[:len(g.open)-1], -1
	}
}

// touch notes that a plan has changed what is free of a machine.
func (t *Matcher) touch(at int) {
	t.versions[at]++
	t.stale = append(t.stale, int32(at))
}
