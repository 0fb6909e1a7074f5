package live

import (
	"container/heap"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
	"github.com/roost-batch/roost/negotiator/picture"
)

// pass makes a plan and lets its grants come about. It reports whether anything has.
func (p *Play) pass() (any bool, err error) {
	if err := p.charge(); err != nil {
		return false, err
	}
	p.Checkpoint.Now = p.Now()
	for len(p.Evicted) > 0 && p.Checkpoint.Now.Sub(p.Evicted[0].At) >= ledger.EvictionLife {
		p.Evicted = p.Evicted[1:]
	}
	plan := p.matcher.Plan(p.Plan())
	for grants := plan.Grants; len(grants) > 0; {
		n := 1
		for n < len(grants) && grants[0].Gang != 0 && grants[n].Gang == grants[0].Gang {
			n++
		}
		if p.begin(grants[:n]) {
			any = true
		}
		grants = grants[n:]
	}
	return any, nil
}

// begin lets grants come about that belong together: all or none of a gang.
func (p *Play) begin(grants []match.Grant) (any bool) {
	type step struct {
		at     int
		before *match.Machine
	}
	var undo []step
	var begun []func()
	for i := range grants {
		g := &grants[i]
		at := p.at[g.Machine.Name]
		a := p.byKey[g.Request.Key]
		for range g.Units {
			before := p.Machines[at]
			c, ok := p.seat(before, a, g)
			if !ok {
				if g.Gang == 0 {
					continue
				}
				for k := len(undo) - 1; k >= 0; k-- {
					p.Machines[undo[k].at] = undo[k].before
				}
				return false
			}
			after, err := before.Turnover(g.Victims, c)
			if err != nil {
				continue
			}
			p.Machines[at] = after
			undo = append(undo, step{at, before})
			begun = append(begun, func() { p.begun(a, g, before, c) })
		}
	}
	for _, f := range begun {
		f()
	}
	return len(begun) > 0
}

// seat is the claim that a grant makes of its machine. One that would have to wait there waits where it is.
func (p *Play) seat(m *match.Machine, a *picture.Ask, g *match.Grant) (c match.Claim, ok bool) {
	if g.Waiting || a == nil {
		return c, false
	}
	r := g.Resources()
	placed, ok := m.Seat(g.Victims, gpu.Request{Resources: r, Class: a.Class.App, MayReclaim: !a.Band.Prod()}, a.Class.Alone)
	if !ok {
		return c, false
	}
	ends := int64(0)
	if a.Walltime > 0 {
		ends = p.now + seconds(a.Walltime)
	}
	return p.claim(a, r, placed, ends), true
}

// begun notes a claim that has begun, and who had to go for it.
func (p *Play) begun(a *picture.Ask, g *match.Grant, before *match.Machine, c match.Claim) {
	for i := range before.Claims {
		if v := &before.Claims[i]; slices.Contains(g.Victims, v.ID) {
			p.evict(before.Name, v, g)
		}
	}
	a.Own--
	a.Claims++
	a.Counts++
	p.account(&c, 1)
	p.run(match.ClaimKey{Machine: before.Name, ID: c.ID}, &hold{ask: a, made: p.now}, false)
}

// run notes that a task has started on a claim.
func (p *Play) run(key match.ClaimKey, h *hold, again bool) {
	a := h.ask
	if h.ends = 0; p.length(a) > 0 {
		h.ends = p.now + p.length(a)
	} else {
		p.Endless++
	}
	p.of[key] = h
	p.plan(key, h.ends)
	p.began[a.Key]++
	p.started++
	if n := len(p.Starts); n > 0 && p.Starts[n-1] == (Start{p.now, a.Key, key.Machine, p.Starts[n-1].Units, again}) {
		p.Starts[n-1].Units++
	} else {
		p.Starts = append(p.Starts, Start{p.now, a.Key, key.Machine, 1, again})
	}
	p.note('s', key.Machine, a.Key.ID)
}

// evict notes that a claim had to go. Its task waits again.
func (p *Play) evict(machine string, v *match.Claim, g *match.Grant) {
	key := match.ClaimKey{Machine: machine, ID: v.ID}
	e := Eviction{At: p.now, Machine: machine, Claim: *v, Why: "its machine is taken away"}
	if g != nil {
		e.For, e.Why = g.Request.Submitter, g.Why
	}
	p.Evictions = append(p.Evictions, e)
	p.Evicted = append(p.Evicted, picture.Eviction{At: p.Now(), Job: v.JobName()})
	p.account(v, -1)
	if h := p.of[key]; h != nil && h.ask != nil {
		h.ask.Own++
		p.left(h.ask)
	}
	delete(p.of, key)
	p.note('e', machine, v.ID)
}

// left notes that a request has a claim less.
func (p *Play) left(a *picture.Ask) { a.Claims, a.Counts = max(a.Claims-1, 0), max(a.Counts-1, 0) }

// finish ends what is over by now.
func (p *Play) finish() {
	over := map[int][]uint64{}
	var machines []int
	for len(p.ends) > 0 && p.ends[0].at <= p.now {
		e := heap.Pop(&p.ends).(end)
		h := p.of[e.claim]
		if h == nil || h.ends != e.at && h.ends > p.now {
			continue // it went before, or another task runs there
		}
		p.note('x', e.claim.Machine, e.claim.ID)
		if p.reuse(e.claim, h) {
			continue
		}
		delete(p.of, e.claim)
		if h.ask != nil {
			p.left(h.ask)
		}
		at := p.at[e.claim.Machine]
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
				p.account(&m.Claims[i], -1)
			}
		}
		if next, err := m.Turnover(over[at]); err == nil {
			p.Machines[at] = next
		}
	}
}

// reuse puts the next task of a request on a claim, if the claim is young enough, and nothing is kept free there.
func (p *Play) reuse(key match.ClaimKey, h *hold) bool {
	a := h.ask
	if a == nil || a.Own == 0 || a.Gang > 1 || p.now-h.made >= worklife || p.length(a) == 0 || p.keptFree(key.Machine) {
		return false
	}
	a.Own--
	p.run(key, h, true)
	return true
}

// keptFree reports whether a machine is drained or reserved, now or later: then the leader is asked again.
func (p *Play) keptFree(machine string) bool {
	if slices.ContainsFunc(p.Drains, func(d match.Drain) bool { return d.Node == machine }) {
		return true
	}
	for _, r := range p.Ledger.Reservations() {
		if slices.Contains(r.Nodes, machine) || r.Amount != nil {
			return true
		}
	}
	return false
}

// Total is what all machines have.
func (p *Play) Total() roost.Resources { return p.total }
