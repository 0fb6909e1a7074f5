package whatif

import (
	"container/heap"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/cellstate"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
)

// runCycle makes a plan and starts its grants. It reports whether any has started.
func (p *Simulation) runCycle() (any bool, err error) {
	if err := p.chargeLedger(); err != nil {
		return false, err
	}
	p.CellCheckpoint.Now = p.Now()
	for len(p.Evicted) > 0 && p.CellCheckpoint.Now.Sub(p.Evicted[0].At) >= ledger.EvictionMemory {
		p.Evicted = p.Evicted[1:]
	}
	plan := p.matcher.Plan(p.Plan())
	for grants := plan.Grants; len(grants) > 0; {
		n := 1
		for n < len(grants) && grants[0].Gang != 0 && grants[n].Gang == grants[0].Gang {
			n++
		}
		if p.startGrants(grants[:n]) {
			any = true
		}
		grants = grants[n:]
	}
	return any, nil
}

// startGrants starts grants that belong together: a gang starts as a whole or not at all.
func (p *Simulation) startGrants(grants []match.Grant) (any bool) {
	type scriptStep struct {
		at     int
		before *match.Machine
	}
	var undo []scriptStep
	var begun []func()
	for i := range grants {
		g := &grants[i]
		at := p.machineByName[g.Machine.Name]
		a := p.byKey[g.Request.Key]
		for range g.Units {
			before := p.Machines[at]
			c, ok := p.claimOfGrant(before, a, g)
			if !ok {
				if g.Gang == 0 {
					continue
				}
				for k := len(undo) - 1; k >= 0; k-- {
					p.Machines[undo[k].at] = undo[k].before
				}
				return false
			}
			after, err := before.AfterClaimsEnd(g.Victims, c)
			if err != nil {
				continue
			}
			p.Machines[at] = after
			undo = append(undo, scriptStep{at, before})
			begun = append(begun, func() { p.addClaim(a, g, before, c) })
		}
	}
	for _, f := range begun {
		f()
	}
	return len(begun) > 0
}

// claimOfGrant returns the claim that a grant makes on its machine. A grant that would
// wait on the node makes none: its task waits where it is.
func (p *Simulation) claimOfGrant(m *match.Machine, a *cellstate.PendingRequest,
	g *match.Grant) (c match.MachineClaim, ok bool) {
	if g.Waiting || a == nil {
		return c, false
	}
	r := g.Resources()
	placed, ok := m.PlaceNext(g.Victims,
		gpu.DeviceRequest{Resources: r, Class: a.Class.AppClass, MayReclaim: !a.Band.IsProd()}, a.Class.Exclusive)
	if !ok {
		return c, false
	}
	ends := int64(0)
	if a.Walltime > 0 {
		ends = p.now + wholeSeconds(a.Walltime)
	}
	return p.newClaim(a, r, placed, ends), true
}

// addClaim adds a claim that has begun, and removes its victims.
func (p *Simulation) addClaim(a *cellstate.PendingRequest, g *match.Grant, before *match.Machine,
	c match.MachineClaim) {
	for i := range before.Claims {
		if v := &before.Claims[i]; slices.Contains(g.Victims, v.ID) {
			p.removeEvicted(before.Name, v, g)
		}
	}
	a.OwnWanted--
	a.Claims++
	a.RunningCount++
	p.updateUsage(&c, 1)
	p.startTask(match.ClaimKey{Machine: before.Name, ID: c.ID}, &runningClaim{ask: a, created: p.now}, false)
}

// startTask records that a task has started on a claim.
func (p *Simulation) startTask(key match.ClaimKey, h *runningClaim, again bool) {
	a := h.ask
	if h.endTime = 0; p.runtime(a) > 0 {
		h.endTime = p.now + p.runtime(a)
	} else {
		p.EndUnknown++
	}
	p.claims[key] = h
	p.scheduleEnd(key, h.endTime)
	p.startedByRequest[a.Key]++
	p.started++
	if n := len(p.Starts); n > 0 &&
		p.Starts[n-1] == (TaskStart{p.now, a.Key, key.Machine, p.Starts[n-1].Units, again}) {
		p.Starts[n-1].Units++
	} else {
		p.Starts = append(p.Starts, TaskStart{p.now, a.Key, key.Machine, 1, again})
	}
	p.addToDigest('s', key.Machine, a.Key.ID)
}

// removeEvicted removes an evicted claim. Its task waits again.
func (p *Simulation) removeEvicted(machine string, v *match.MachineClaim, g *match.Grant) {
	key := match.ClaimKey{Machine: machine, ID: v.ID}
	e := ClaimEviction{At: p.now, Machine: machine, Claim: *v, Reason: "its machine is taken away"}
	if g != nil {
		e.Preemptor, e.Reason = g.Request.Submitter, g.EvictionReason
	}
	p.Evictions = append(p.Evictions, e)
	p.Evicted = append(p.Evicted, cellstate.TaskEviction{At: p.Now(), Job: v.JobName()})
	p.updateUsage(v, -1)
	if h := p.claims[key]; h != nil && h.ask != nil {
		h.ask.OwnWanted++
		p.releaseClaim(h.ask)
	}
	delete(p.claims, key)
	p.addToDigest('e', machine, v.ID)
}

// releaseClaim takes one claim from a request's counts.
func (p *Simulation) releaseClaim(a *cellstate.PendingRequest) {
	a.Claims, a.RunningCount = max(a.Claims-1, 0), max(a.RunningCount-1, 0)
}

// endDueTasks ends the tasks whose time has come.
func (p *Simulation) endDueTasks() {
	over := map[int][]uint64{}
	var machines []int
	for len(p.ends) > 0 && p.ends[0].at <= p.now {
		e := heap.Pop(&p.ends).(taskEnd)
		h := p.claims[e.claim]
		if h == nil || h.endTime != e.at && h.endTime > p.now {
			continue // it was evicted, or another task runs there
		}
		p.addToDigest('x', e.claim.Machine, e.claim.ID)
		if p.reuseClaim(e.claim, h) {
			continue
		}
		delete(p.claims, e.claim)
		if h.ask != nil {
			p.releaseClaim(h.ask)
		}
		at := p.machineByName[e.claim.Machine]
		if over[at] == nil {
			machines = append(machines, at)
		}
		over[at] = append(over[at], e.claim.ID)
	}
	slices.Sort(machines)
	for _, at := range machines {
		m := p.Machines[at]
		for i := range m.Claims {
			if slices.Contains(over[at], m.Claims[i].ID) {
				p.updateUsage(&m.Claims[i], -1)
			}
		}
		if next, err := m.AfterClaimsEnd(over[at]); err == nil {
			p.Machines[at] = next
		}
	}
}

// reuseClaim runs the next task of a request on a claim. The claim must be young, and its
// machine must not be reserved.
func (p *Simulation) reuseClaim(key match.ClaimKey, h *runningClaim) bool {
	a := h.ask
	if a == nil || a.OwnWanted == 0 || a.Gang > 1 || p.now-h.created >= maxClaimAge || p.runtime(a) == 0 ||
		p.isReserved(key.Machine) {
		return false
	}
	a.OwnWanted--
	p.startTask(key, h, true)
	return true
}

// isReserved reports whether a machine is drained or reserved, now or later. Then the
// leader must be asked again.
func (p *Simulation) isReserved(machine string) bool {
	if slices.ContainsFunc(p.Drains, func(d match.MachineDrain) bool { return d.Node == machine }) {
		return true
	}
	for _, r := range p.Ledger.Reservations() {
		if slices.Contains(r.Nodes, machine) || r.Amount != nil {
			return true
		}
	}
	return false
}

// Total returns the resources of all machines.
func (p *Simulation) Total() roost.Resources { return p.total }
