package negotiator

import (
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
	"github.com/roost-batch/roost/negotiator/picture"
)

// cycle makes a plan of all that is known. The grants that follow from it go into the draft, and what they wait for into the schedds' mailboxes.
func (c *cell) cycle(now time.Time) {
	c.lapse(now)
	c.changed, c.explain = false, time.Time{}
	c.announce()
	if !c.synced {
		c.waitForCollectors(now)
		return
	}
	if !c.audited {
		c.charge(now)
	}
	c.judge(now)
	snapshot, requests := c.snapshot(now)
	if snapshot == nil {
		return
	}
	plan := c.matcher.Plan(snapshot)
	c.keep(plan.Kept)
	c.settleProposals(snapshot.Requests, plan)
	c.draftAll(now, plan.Grants, requests)
	c.plans++
	for _, u := range plan.Unplaced {
		c.waits(now, requests[u.Request])
		if u.Explanation != nil {
			c.tell(now, requests[u.Request], u.Explanation)
		}
	}
	c.turnAway(now, plan.Unplaced, requests)
	c.denyRuns(plan.Unplaced, requests)
}

// waits notes that some of a request has to wait.
func (c *cell) waits(now time.Time, r *request) {
	if r.waited != c.plans-1 || r.Since == 0 {
		r.Since = now.Unix()
	}
	r.waited = c.plans
}

// waitForCollectors says what is wrong if no collector has answered for a moment.
func (c *cell) waitForCollectors(now time.Time) {
	if c.begun.IsZero() {
		c.begun = now
	}
	if now.Sub(c.begun) < explainEvery {
		return
	}
	for _, r := range c.wants(now) {
		c.send(r, &wire.Explanation{Summary: "the negotiator does not know the machines: no collector has answered yet"})
	}
}

// snapshot is the pool as it is now, and which request of ours each of its requests is.
func (c *cell) snapshot(now time.Time) (s *match.Snapshot, requests map[*match.Request]*request) {
	all := c.wants(now)
	p := c.picture(now)
	if p.Asking = picture.Gather(asks(all)); len(p.Asking) == 0 {
		return nil, nil
	}
	requests = make(map[*match.Request]*request, len(all))
	for _, r := range all {
		requests[&r.Request] = r
	}
	c.chooseExplained(now, p.Asking, requests)
	c.record.look(func(l *ledger.Ledger) { s = p.Snapshot(l) })
	return s, requests
}

// wants lists the requests that want something, with how much, in order.
func (c *cell) wants(now time.Time) []*request {
	var list []*request
	room, avoided := c.refillLost(now), c.avoided(now)
	for _, name := range slices.Sorted(maps.Keys(c.schedds)) {
		s := c.schedds[name]
		if s.mail == nil || s.unanswered >= maxUnanswered {
			continue
		}
		for _, id := range slices.Sorted(maps.Keys(s.requests)) {
			r := s.requests[id]
			c.takeProposals(r)
			if r.problem != "" {
				c.complain(r)
				if r.Now && !r.refusal {
					c.denyRun(r, "it cannot be matched: "+r.problem)
				}
				continue
			}
			if !r.Now && c.stopped(r) {
				continue
			}
			if r.Wanted = r.wanted - len(r.unseen); r.Wanted <= 0 {
				continue
			}
			if c.ration(now, r, &room); r.Wanted == 0 {
				continue
			}
			r.NoWait = min(r.noWait, r.Wanted)
			r.Avoid = r.avoid(now, c.machines)
			for name := range r.Avoid {
				c.sweepBy(r.refused[name].until)
			}
			r.Avoid = r.avoids(avoided, r.keptFrom(now, r.Avoid))
			list = append(list, r)
		}
	}
	return list
}

// grant drafts one unit of a grant and remembers it.
func (c *cell) grant(now time.Time, r *request, g match.Grant) *pending {
	c.lastID++
	c.replaced(r)
	s, m := c.schedds[r.Key.Schedd], c.machines[g.Machine.Name]
	message := &wire.Grant{
		Id: c.lastID, Request: r.Key.ID, Node: m.Name, Address: m.Address, Host: m.Host, Epoch: c.epoch, Owner: r.Submitter.Owner, Group: r.Submitter.Group, Band: r.Band.String(),
		Resources: wire.FromResources(g.Resources()), Waiting: g.Waiting, Victims: g.Victims, Why: g.Why,
	}
	claimBy := claimBy(now, m, r.Class.Limits)
	message.ClaimBy = int64(claimBy)
	if m.names {
		message.Capability = wire.Capability(m.key, message, r.Key.Schedd)
	} else {
		message.Capability = wire.Capability(m.key, message, "")
	}
	p := &pending{
		id: c.lastID, epoch: c.epoch, claimBy: claimBy, request: r.Key, mail: s.mail, submitter: r.Submitter, band: r.Band, machine: m.Name,
		promise: match.Promise{Request: r.Key, Resources: g.Resources(), Class: r.Class.App, NonProd: !r.Band.Prod(), Waiting: g.Waiting, Unit: g.Unit, Ends: r.ends(now), Victims: g.Victims},
		message: message, started: m.Started, licences: r.Class.Limits,
	}
	c.pending[p.id] = p
	c.promised[p.machine] = append(c.promised[p.machine], p)
	r.unseen, r.short = append(r.unseen, p.id), time.Time{}
	s.unanswered++
	c.draft.grants = append(c.draft.grants, p)
	return p
}

// wake is when something is due though nothing has changed; ok is false when the periodic one is soon enough.
func (c *cell) wake() (at time.Time, ok bool) {
	for _, t := range [...]time.Time{c.sweep, c.explain, c.holdsBy} {
		if !t.IsZero() && (!ok || t.Before(at)) {
			at, ok = t, true
		}
	}
	return at, ok
}

// stir makes a cycle due where time asks for one.
func (c *cell) stir(now time.Time) {
	for _, t := range [...]time.Time{c.sweep, c.explain} {
		c.changed = c.changed || !t.IsZero() && !now.Before(t)
	}
}
