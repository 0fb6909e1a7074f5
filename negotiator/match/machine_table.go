package match

import (
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
)

// machineTable is how the machines stand before a plan places anything: kept from one
// plan to the next, and brought up to date where something has changed, so that a cycle
// costs what has changed and not what there is. A plan changes it where it places
// something; those machines begin anew with the next plan. Whoever changes what is free
// of a machine in a plan says so with touch.
type machineTable struct {
	machines      []*Machine           // of the last snapshot
	free          []roost.Resources    // by machine, as yet: what batch requests can be given
	streamFree    []roost.MilliCPU     // by machine, as yet: what one stream request can be given
	units         []*gpu.FreeResources // by machine, as yet: nil where free says all
	versions      []int32              // by machine: how often something was placed there in this plan
	openIndex     []int32              // by machine: its number in open, or -1
	withFreeCPU   []int32              // machines that had any CPU free when the plan began
	machineTotals []roost.Resources    // by machine: what it has in all
	drained       []bool               // by machine: nothing is to start there
	acceptsQueued []bool               // by machine: more may wait for it
	queueMachines int                  // of those

	initialFree       []roost.Resources  // by machine: what was free when it last began, nothing negative
	resetCycle        []int              // by machine: the plan in which it last began anew
	toReset           []int32            // machines that have to begin anew
	withPendingGrants []int32            // machines of which something was promised when the last plan was made
	poolTotal         roost.Resources    // of the pool
	poolFree          roost.Resources    // of the pool, as the plan begins
	reclaim           roost.ReclaimLevel // of the last snapshot
	hasPreemptible    []bool             // by machine: it has claims that may be displaced
	preemptibleCount  int                // of those
	vacating          map[int32]bool     // machines that claims are about to leave
	rankPreempting    map[int32]bool     // machines that would rather run another than some of their claims
}

// syncTable brings the table and the ground up to date with a snapshot. A machine that is
// the same as in the last plan costs nothing but a look.
func (t *Matcher) syncTable(p *negotiationCycle) {
	g := &t.machineTable
	g.toReset = append(g.toReset, g.withPendingGrants...)
	g.withPendingGrants = g.withPendingGrants[:0]
	if len(p.Machines) != len(g.machines) || !t.replaceAds(p.Machines) {
		t.renumberMachines(p.Machines)
	}
	g.setReclaimLevel(p.Reclaim)
	for name := range p.Pending {
		if m := t.byName[name]; m != nil {
			g.withPendingGrants = append(g.withPendingGrants, m.number)
		}
	}
	slices.Sort(g.withPendingGrants) // that the order does not hang on a map's
	g.toReset = append(g.toReset, g.withPendingGrants...)
	t.changedMachines = t.changedMachines[:0]
	for _, at := range g.toReset {
		if g.resetCycle[at] != t.cycleNumber {
			g.resetCycle[at] = t.cycleNumber
			t.changedMachines = append(t.changedMachines, at)
			t.resetMachine(p, int(at))
		}
	}
	g.toReset = g.toReset[:0]
}

// replaceAds takes in machines of which some have new ads; ok is false if others have
// come or gone.
func (t *Matcher) replaceAds(machines []*Machine) (ok bool) {
	g, shrunk := &t.machineTable, false
	for at, m := range machines {
		old := g.machines[at]
		if old == m {
			continue
		}
		if old.Name != m.Name || m.inMatcher == t {
			return false
		}
		m.inMatcher, old.inMatcher = t, nil
		m.row, m.number, m.seenInCycle = old.row, int32(at), t.cycleNumber
		if m.Ad != old.Ad {
			t.table.Set(m.row, m.Ad)
		}
		t.byName[m.Name], t.machineByRow[m.row] = m, m
		g.poolTotal = g.poolTotal.Sub(old.Total).Add(m.Total)
		g.machines[at] = m
		g.toReset = append(g.toReset, int32(at))
		if !t.fragmentation.replaceMachine(old, m) {
			shrunk = true
		}
	}
	if shrunk {
		t.fragmentation.recountClaims(machines)
	}
	return true
}

// renumberMachines takes in machines of which some have come or gone: all begin anew.
func (t *Matcher) renumberMachines(machines []*Machine) {
	g, n := &t.machineTable, len(machines)
	for at, m := range machines {
		m.number, m.seenInCycle = int32(at), t.cycleNumber
		if m.inMatcher == t {
			continue
		}
		m.inMatcher = t
		if old := t.byName[m.Name]; old != nil && old.inMatcher == t && old.seenInCycle != t.cycleNumber {
			m.row, old.inMatcher = old.row, nil
			t.table.Set(m.row, m.Ad)
		} else {
			m.row = t.table.Add(m.Ad)
		}
		for int(m.row) >= len(t.machineByRow) {
			t.machineByRow, t.numberByRow = append(t.machineByRow, nil), append(t.numberByRow, -1)
		}
		t.byName[m.Name], t.machineByRow[m.row] = m, m
	}
	if t.table.Len() != n {
		t.removeMachines()
	}
	g.machines = append(g.machines[:0], machines...)
	clear(g.machines[n:cap(g.machines)])
	g.free, g.initialFree, g.streamFree = zeroedSlice(g.free, n), zeroedSlice(g.initialFree, n),
		zeroedSlice(g.streamFree, n)
	g.units, g.versions, g.openIndex = zeroedSlice(g.units, n), zeroedSlice(g.versions, n), zeroedSlice(g.openIndex, n)
	g.drained, g.machineTotals = zeroedSlice(g.drained, n), zeroedSlice(g.machineTotals, n)
	g.acceptsQueued, g.resetCycle = zeroedSlice(g.acceptsQueued, n), zeroedSlice(g.resetCycle, n)
	g.hasPreemptible, g.preemptibleCount, g.vacating, g.rankPreempting = zeroedSlice(g.hasPreemptible, n),
		0, map[int32]bool{}, map[int32]bool{}
	g.withFreeCPU, g.toReset, g.queueMachines, g.poolTotal, g.poolFree = g.withFreeCPU[:0], g.toReset[:0],
		0, roost.Resources{}, roost.Resources{}
	for at, m := range machines {
		g.openIndex[at], t.numberByRow[m.row] = -1, int32(at)
		g.toReset = append(g.toReset, int32(at))
		g.poolTotal = g.poolTotal.Add(m.Total)
	}
	t.fragmentation.recountClaims(machines)
}

// zeroedSlice is a slice of n zeros, in the memory of the one before if that is enough.
func zeroedSlice[T any](s []T, n int) []T {
	if cap(s) < n || cap(s) > 4*n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// removeMachines takes machines out of the table that the snapshot does not have.
func (t *Matcher) removeMachines() {
	for row, m := range t.machineByRow {
		if m != nil && m.seenInCycle != t.cycleNumber {
			t.table.Delete(classad.RowID(row))
			t.machineByRow[row] = nil
			if m.inMatcher == t {
				m.inMatcher = nil
			}
			if t.byName[m.Name] == m {
				delete(t.byName, m.Name)
			}
		}
	}
}

// resetMachine notes what is free of a machine, what was promised of it taken off.
func (t *Matcher) resetMachine(p *negotiationCycle, at int) {
	g, m := &t.machineTable, t.machineTable.machines[at]
	pendingCount := p.Pending[m.Name]
	g.versions[at], g.units[at], g.drained[at], g.machineTotals[at] = 0, nil, m.drained, m.Total
	preemptibleClaims := m.preemptible[roost.BatchBand].claims > 0 && !m.drained
	g.preemptibleCount += boolToInt(preemptibleClaims) - boolToInt(g.hasPreemptible[at])
	if g.hasPreemptible[at] = preemptibleClaims; m.claimsChanging {
		g.vacating[int32(at)] = true
	} else {
		delete(g.vacating, int32(at))
	}
	if m.rankPreempts && !m.drained {
		g.rankPreempting[int32(at)] = true
	} else {
		delete(g.rankPreempting, int32(at))
	}
	if m.freeByUnit {
		p.resetUnits(at, m, pendingCount)
	} else {
		g.free[at], g.streamFree[at] = m.Free, m.streamFree
		for _, one := range pendingCount {
			if len(one.Victims) > 0 {
				p.preemption().reserveForPreemptor(at, &one)
			} else if !one.Waiting {
				p.subtractSums(at, one.Resources, one.Class)
			}
		}
	}
	g.poolFree = g.poolFree.Sub(g.initialFree[at])
	g.initialFree[at] = maxResources(g.free[at], roost.Resources{})
	g.poolFree = g.poolFree.Add(g.initialFree[at])
	if room := m.acceptsQueued && !m.drained; room != g.acceptsQueued[at] {
		g.acceptsQueued[at] = room
		if g.queueMachines--; room {
			g.queueMachines += 2
		}
	}
	g.setHasFreeCPU(at, g.free[at].CPU > 0 || g.streamFree[at] > 0)
}

// setHasFreeCPU puts a machine among the open ones, or takes it out. Their order means
// nothing.
func (g *machineTable) setHasFreeCPU(at int, open bool) {
	slot := g.openIndex[at]
	switch {
	case open && slot < 0:
		g.openIndex[at] = int32(len(g.withFreeCPU))
		g.withFreeCPU = append(g.withFreeCPU, int32(at))
	case !open && slot >= 0:
		last := g.withFreeCPU[len(g.withFreeCPU)-1]
		g.withFreeCPU[slot], g.openIndex[last] = last, slot
		g.withFreeCPU, g.openIndex[at] = g.withFreeCPU[:len(g.withFreeCPU)-1], -1
	}
}

// markChanged notes that a plan has changed what is free of a machine.
func (t *Matcher) markChanged(at int) {
	t.versions[at]++
	t.toReset = append(t.toReset, int32(at))
}
