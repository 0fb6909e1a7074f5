package negotiator

import (
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/cellstate"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
)

// runCycle makes a plan. The resulting grants go into the pending entry, and explanations
// into the schedds' send queues.
func (c *leaderState) runCycle(now time.Time) {
	c.grants().expireOverdue(now)
	c.changed, c.explainAt = false, time.Time{}
	c.broadcastPolicy()
	if !c.synced {
		c.collectorProblem(now)
		return
	}
	if !c.usageCompared {
		c.chargeAll(now)
	}
	for _, who := range c.guestUsage.takeChanged() {
		c.chargeSubmitter(now, who)
	}
	c.changed = false
	c.blackHoleDrains().drainBlackHoles(now)
	snapshot, requests := c.cellSnapshot(now)
	if snapshot == nil {
		return
	}
	plan := c.matcher.Plan(snapshot)
	c.sendUnavailable(plan.Unavailable)
	c.countConflicts(snapshot.Requests, plan)
	c.addGrants(now, plan.Grants, requests)
	c.planCount++
	for _, u := range plan.Unplaced {
		c.noteWaiting(now, requests[u.Request])
		if u.Explanation != nil {
			c.sendExplanation(now, requests[u.Request], u.Explanation)
		}
	}
	c.rejectStreams(now, plan.Unplaced, requests)
	c.denyRuns(plan.Unplaced, requests)
}

// noteWaiting records that a part of a request must wait.
func (c *leaderState) noteWaiting(now time.Time, r *scheddRequest) {
	if r.lastWaitedPlan != c.planCount-1 || r.WaitingSince == 0 {
		r.WaitingSince = now.Unix()
	}
	r.lastWaitedPlan = c.planCount
}

// collectorProblem explains to schedds that no collector answers, after a moment.
func (c *leaderState) collectorProblem(now time.Time) {
	if c.firstCycle.IsZero() {
		c.firstCycle = now
	}
	if now.Sub(c.firstCycle) < explainInterval {
		return
	}
	for _, r := range c.pendingRequests(now) {
		c.sendTo(r,
			&wire.Explanation{Summary: "the negotiator does not know the machines: no collector has answered yet"})
	}
}

// cellSnapshot returns the snapshot of the present pool for the matcher, and the leader's
// request for each request in it.
func (c *leaderState) cellSnapshot(now time.Time) (s *match.Snapshot, requests map[*match.Request]*scheddRequest) {
	all := c.pendingRequests(now)
	p := c.cellState(now)
	if p.ToPlace = cellstate.CollectWaiting(pendingRequestsOf(all)); len(p.ToPlace) == 0 {
		return nil, nil
	}
	requests = make(map[*match.Request]*scheddRequest, len(all))
	for _, r := range all {
		requests[&r.Request] = r
	}
	c.chooseExplained(now, p.ToPlace, requests)
	c.ledgerStore.view(func(l *ledger.Ledger) { s = p.Snapshot(l) })
	return s, requests
}

// pendingRequests lists the requests that want tasks placed, with their numbers, in
// order.
func (c *leaderState) pendingRequests(now time.Time) []*scheddRequest {
	var list []*scheddRequest
	room, avoided := c.refillLostTasks(now), c.blackHoleDrains().avoidedMachines(now)
	for _, name := range slices.Sorted(maps.Keys(c.schedds)) {
		s := c.schedds[name]
		if s.sendQueue == nil || s.unansweredGrants >= maxUnanswered {
			continue
		}
		for _, id := range slices.Sorted(maps.Keys(s.requests)) {
			r := s.requests[id]
			c.takeSelfPlacements(r)
			if r.problem != "" {
				c.sendProblem(r)
				if r.Now && !r.waitRefused {
					c.denyRun(r, "it cannot be matched: "+r.problem)
				}
				continue
			}
			if !r.Now && c.admission().queueStopped(r) {
				continue
			}
			r.PriorityUnits = max(0, r.atPriority-len(r.unseenGrants))
			if r.Wanted = r.wanted - len(r.unseenGrants); r.Wanted <= 0 {
				continue
			}
			if c.limitLostTasks(now, r, &room); r.Wanted == 0 {
				continue
			}
			r.NoQueue = min(r.noWait, r.Wanted)
			r.Avoid = r.avoidedMachines(now, c.machines)
			for name := range r.Avoid {
				c.grants().setNextSweep(r.refusals[name].until)
			}
			r.Avoid = r.addAvoidedMachines(avoided, s.addAvoided(now, r, r.Avoid))
			list = append(list, r)
		}
	}
	return list
}

// addGrant adds one task of a grant to the pending entry, and counts the grant as
// pending.
func (c *leaderState) addGrant(now time.Time, r *scheddRequest, g match.Grant) *pendingGrant {
	c.lastID++
	c.countLostGranted(r)
	s, m := c.schedds[r.Key.Schedd], c.machines[g.Machine.Name]
	message := &wire.Grant{
		Id: c.lastID, Request: r.Key.ID, Node: m.Name, Address: m.Address, Host: m.Host, Epoch: c.epoch,
		Owner: r.Submitter.Owner, Group: r.Submitter.Group, Band: r.Band.String(),
		Resources: wire.FromResources(g.Resources()), Waiting: g.Waiting, Victims: g.Victims, Why: g.EvictionReason,
	}
	message.PortRights = c.portRights(r)
	claimBy := claimDeadline(now, m, r.Class.Limits)
	message.ClaimBy = int64(claimBy)
	if m.names {
		message.Capability = wire.ClaimToken(m.grantKey, message, r.Key.Schedd)
	} else {
		message.Capability = wire.ClaimToken(m.grantKey, message, "")
	}
	p := &pendingGrant{
		id: c.lastID, epoch: c.epoch, claimBy: claimBy, request: r.Key, sendQueue: s.sendQueue, submitter: r.Submitter,
		band: r.Band, machine: m.Name,
		resources: match.PendingGrant{Request: r.Key, Resources: g.Resources(), Class: r.Class.AppClass,
			MayReclaim: !r.Band.IsProd(), Waiting: g.Waiting, Unit: g.Unit, WalltimeEnd: r.walltimeEnd(now),
			Victims: g.Victims, Ports: r.Class.StaticPorts},
		message: message, started: m.Started, limitUse: r.Class.Limits,
	}
	c.pendingByID[p.id] = p
	c.pendingByMachine[p.machine] = append(c.pendingByMachine[p.machine], p)
	r.unseenGrants, r.noRoomSince = append(r.unseenGrants, p.id), time.Time{}
	s.unansweredGrants++
	c.pendingEntry.grants = append(c.pendingEntry.grants, p)
	return p
}

// nextWake returns when something is due without an event; ok is false if the periodic
// cycle is soon enough.
func (c *leaderState) nextWake() (at time.Time, ok bool) {
	for _, t := range [...]time.Time{c.nextSweep, c.explainAt, c.usageCommitBy} {
		if !t.IsZero() && (!ok || t.Before(at)) {
			at, ok = t, true
		}
	}
	return at, ok
}

// markDue marks a cycle as due when its time has come.
func (c *leaderState) markDue(now time.Time) {
	for _, t := range [...]time.Time{c.nextSweep, c.explainAt} {
		c.changed = c.changed || !t.IsZero() && !now.Before(t)
	}
}
