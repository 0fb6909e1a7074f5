package match

import (
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
)

// machineTable holds the state of the machines before a plan places anything. It is
// retained from one cycle to the next and updated where something has changed, so the
// cost of a cycle is proportional to the changes. A cycle changes it where it places
// something, and must call markChanged: those machines are reset in the next cycle.
type machineTable struct {
	machines []*Machine        // of the last snapshot
	free     []roost.Resources // by machine: what batch requests can get at this point of the cycle
	// by machine: CPU that one stream request can get at this point of the cycle
	streamFree []roost.MilliCPU
	// by machine: free resources by unit at this point; nil where free is exact
	units         []*gpu.FreeResources
	versions      []int32           // by machine: how often something was placed there in this cycle
	openIndex     []int32           // by machine: its index in withFreeCPU, or -1
	withFreeCPU   []int32           // machines that had free CPU when the cycle began
	machineTotals []roost.Resources // by machine: its total resources
	drained       []bool            // by machine: nothing may start there
	acceptsQueued []bool            // by machine: a node queue has a free place
	queueMachines int               // number of machines in acceptsQueued

	initialFree       []roost.Resources  // by machine: what was free at its last reset, nothing negative
	resetCycle        []int              // by machine: number of the cycle of its last reset
	toReset           []int32            // machines that must be reset
	withPendingGrants []int32            // machines with pending grants in the last snapshot
	poolTotal         roost.Resources    // total resources of the pool
	poolFree          roost.Resources    // free resources of the pool when the cycle begins
	reclaim           roost.ReclaimLevel // level of the last snapshot
	hasPreemptible    []bool             // by machine: it has claims that may be preempted
	preemptibleCount  int                // number of machines in hasPreemptible
	vacating          map[int32]bool     // machines with claims that will leave soon
	rankPreempting    map[int32]bool     // machines whose Rank may prefer a request to some of their claims
}

// syncTable updates the machine table to a snapshot. A machine that is the same as in the
// last cycle costs one comparison.
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
	slices.Sort(g.withPendingGrants) // so that the order does not depend on a map's
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

// replaceAds takes over new ads of the same machines; ok is false if machines have come
// or gone.
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

// renumberMachines takes over a changed set of machines and resets them all.
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

// zeroedSlice returns n zeros, in the memory of s if that is large enough.
func zeroedSlice[T any](s []T, n int) []T {
	if cap(s) < n || cap(s) > 4*n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// removeMachines deletes the machines from the table that the snapshot does not have.
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

// resetMachine computes what is free of a machine, less its pending grants.
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

// setHasFreeCPU puts a machine into withFreeCPU, or takes it out. The order of that list
// means nothing.
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

// markChanged records that a cycle has changed what is free of a machine.
func (t *Matcher) markChanged(at int) {
	t.versions[at]++
	t.toReset = append(t.toReset, int32(at))
}
