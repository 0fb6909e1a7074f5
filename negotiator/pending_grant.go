package negotiator

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/match"
)

// pendingGrant is a grant that a machine's ad does not show yet.
//
// A grant is pending from its making until the machine's ad tells the same:
//
//	          in the log             GrantResult claimed            machine ad of that sequence, or later
//	drafted ─────────────▶ granted ─────────────────────▶ claimed ───────────────────────────────────────▶ forgotten
//	   │                      │                              │
//	   └── its schedd left ───┴── refused, or 10 s ──────────┴── 10 s, or a new start of the machine ────▶ forgotten
//
// While it is pending its resources are subtracted from what the machine's ad calls free.
// One that takes licences is not forgotten after 10 s: it is overdue, and keeps its
// licences alone, until it is certain what has become of it (see limitUse.go).
type pendingGrant struct {
	id        uint64
	epoch     uint64
	request   match.RequestKey
	sendQueue *sendQueue // of the conversation in which request means something
	submitter fairshare.Submitter
	band      roost.PriorityBand
	machine   string
	resources match.PendingGrant
	limitUse  []roost.LimitRequest
	claimBy   time.Duration // what the machine's clock shows when nobody can claim it any more; 0: nobody knows
	overdue   bool
	stage     grantStage
	message   *wire.Grant // drafted: what is to be sent
	deadline  time.Time   // granted and claimed: when it is forgotten
	sequence  uint64      // claimed: of the first ad that shows it
	started   int64       // of the machine when the grant was made
}

// grantStage is how far a grant has come. It only rises.
type grantStage int

const (
	uncommitted grantStage = iota // not in the log yet, and nobody was told
	granted                       // the schedd was told
	claimed                       // the machine has made a claim of it
)

// unackedGrant is a grant that was claimed while the schedd had not yet said that it took
// it into account.
type unackedGrant struct {
	grant *pendingGrant
	at    time.Time
}

// adShowsClaim reports whether a machine's ad already tells of a claim.
func adShowsClaim(m *inventoryMachine, p *pendingGrant) bool {
	return p.stage == claimed && (m.Started > p.started || m.Started == p.started && m.Sequence >= p.sequence)
}

func (c *leaderState) forgetGrant(now time.Time, p *pendingGrant) {
	delete(c.pendingByID, p.id)
	c.resolveLimitedGrant(now, p)
	list := slices.DeleteFunc(c.pendingByMachine[p.machine], func(other *pendingGrant) bool { return other == p })
	if len(list) == 0 {
		delete(c.pendingByMachine, p.machine)
	} else {
		c.pendingByMachine[p.machine] = list
	}
	if s := c.schedds[p.request.Schedd]; s != nil && p.stage != claimed {
		s.unansweredGrants--
	}
}

// resolveLimitedGrant notes for the next leader that it is certain what has become of a
// grant with licences.
func (c *leaderState) resolveLimitedGrant(now time.Time, p *pendingGrant) {
	if p.claimBy == 0 {
		return
	}
	c.pendingEntry.resolvedGrants = append(c.pendingEntry.resolvedGrants, p.id)
	if c.usageCommitBy.IsZero() {
		c.usageCommitBy = now.Add(usageCommitInterval)
	}
}

// handleGrantAnswer takes in what became of a grant.
func (c *leaderState) handleGrantAnswer(now time.Time, s *scheddState, result *wire.GrantResult) {
	p := c.pendingByID[result.GetGrant()]
	if p == nil || p.request.Schedd != s.name || p.stage != granted || p.epoch != cmp.Or(result.GetEpoch(), c.epoch) {
		return
	}
	c.changed = true
	r := c.requestOf(p)
	m := c.machines[p.machine]
	if r != nil && (!result.GetClaimed() || !r.reportsSeenGrants) {
		r.removeUnseen(p.id)
	}
	if !result.GetClaimed() {
		c.forgetGrant(now, p)
		if r != nil {
			r.addRefusal(now, p.machine, m, result)
		}
		return
	}
	s.unansweredGrants--
	p.resources.Waiting = result.GetWaiting() // it may have found room after all
	p.stage, p.sequence, p.deadline, p.overdue = claimed, result.GetAdSequence(), now.Add(grantTTL), false
	if p.sequence == 0 && len(p.limitUse) > 0 {
		p.sequence = unknownClock
	}
	if r != nil {
		delete(r.refusals, p.machine)
		c.unackedGrants = append(c.unackedGrants, unackedGrant{p, now.Add(ackTimeout)})
		c.setNextSweep(now.Add(ackTimeout))
	}
	if m != nil && adShowsClaim(m, p) {
		c.forgetGrant(now, p)
	}
}

// requestOf is the request that a grant was for, nil if that is gone.
func (c *leaderState) requestOf(p *pendingGrant) *scheddRequest {
	if s := c.schedds[p.request.Schedd]; s != nil && s.sendQueue == p.sendQueue {
		return s.requests[p.request.ID]
	}
	return nil
}

// expireOverdue forgets the grants that have been pending for too long, and the schedds
// that have been away for too long.
func (c *leaderState) expireOverdue(now time.Time) {
	if c.nextSweep.IsZero() || now.Before(c.nextSweep) {
		return
	}
	c.nextSweep = time.Time{}
	c.expireUnacked(now)
	for _, id := range slices.Sorted(maps.Keys(c.pendingByID)) {
		p := c.pendingByID[id]
		if p.stage == uncommitted {
			continue // what is not in the log soon never will be: then this negotiator leads no more
		}
		if !now.Before(p.deadline) {
			c.expireGrant(now, p)
		} else {
			c.setNextSweep(p.deadline)
		}
	}
}

// expireGrant gives up waiting for news of a grant.
func (c *leaderState) expireGrant(now time.Time, p *pendingGrant) {
	c.dropGrant(p)
	c.changed = true
	if p.claimBy == 0 || p.overdue {
		c.forgetGrant(now, p)
		return
	}
	p.overdue, p.deadline = true, now.Add(absentUsageTTL)
	c.setNextSweep(p.deadline)
}

// dropGrant takes a grant that will not be answered off what its request was given.
func (c *leaderState) dropGrant(p *pendingGrant) {
	if r := c.requestOf(p); r != nil && p.stage != claimed {
		r.removeUnseen(p.id)
	}
}

// expireUnacked strikes claimed grants of which the schedd has not said in a while that
// it took them into account. It may have had nothing to say: as much as the grant took
// off its wish, new tasks had added.
func (c *leaderState) expireUnacked(now time.Time) {
	for len(c.unackedGrants) > 0 {
		first := c.unackedGrants[0]
		if now.Before(first.at) {
			c.setNextSweep(first.at)
			return
		}
		if r := c.requestOf(first.grant); r != nil && r.removeUnseen(first.grant.id) {
			c.changed = true
		}
		c.unackedGrants = c.unackedGrants[1:]
	}
}

func (c *leaderState) setNextSweep(at time.Time) {
	if c.nextSweep.IsZero() || at.Before(c.nextSweep) {
		c.nextSweep = at
	}
}
