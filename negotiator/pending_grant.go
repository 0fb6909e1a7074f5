package negotiator

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/metrics"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/match"
)

// pendingGrant is a grant that a machine's ad does not show yet.
//
// A grant is pending from the plan until the machine's ad shows it:
//
//	            in the log        GrantResult claimed        ad of that sequence, or later
//	uncommitted ──────▶ granted ───────────────────▶ claimed ────────────────────▶ dropped
//	   │                   │                            │
//	   └─ its schedd left ─┴─ refused, or 10 s ─────────┴─ 10 s, or a new start ─▶ dropped
//	                                                       of the machine
//
// While it is pending its resources are subtracted from what the machine's ad shows as
// free. A grant with concurrency limits is not dropped after 10 s: it becomes overdue,
// and holds only its limits until its outcome is certain (see limit_use.go).
type pendingGrant struct {
	id        uint64
	epoch     uint64
	request   match.RequestKey
	sendQueue *sendQueue // session in which the request id is valid
	submitter fairshare.Submitter
	band      roost.PriorityBand
	machine   string
	resources match.PendingGrant
	limitUse  []roost.LimitRequest
	claimBy   time.Duration // the machine's clock after which the claim is refused; 0: unknown
	overdue   bool
	stage     grantStage
	message   *wire.Grant // uncommitted: the message to send
	deadline  time.Time   // granted and claimed: when it expires
	sequence  uint64      // claimed: sequence of the first ad that shows it
	started   int64       // start of the machine when the grant was made
}

// grantStage is the stage of a grant. It only rises.
type grantStage int

const (
	uncommitted grantStage = iota // not in the log, and not sent
	granted                       // sent to the schedd
	claimed                       // the machine has made a claim of it
)

// unackedGrant is a claimed grant that the schedd has not yet subtracted from what it
// wants.
type unackedGrant struct {
	grant *pendingGrant
	at    time.Time
}

// adShowsClaim reports whether a machine's ad already shows a claim.
func adShowsClaim(m *inventoryMachine, p *pendingGrant) bool {
	return p.stage == claimed && (m.Started > p.started || m.Started == p.started && m.Sequence >= p.sequence)
}

func (c grantTracker) forgetGrant(now time.Time, p *pendingGrant) {
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

// resolveLimitedGrant records for the next leader that the outcome of a grant with limits
// is certain.
func (c grantTracker) resolveLimitedGrant(now time.Time, p *pendingGrant) {
	if p.claimBy == 0 {
		return
	}
	c.pendingEntry.resolvedGrants = append(c.pendingEntry.resolvedGrants, p.id)
	if c.usageCommitBy.IsZero() {
		c.usageCommitBy = now.Add(usageCommitInterval)
	}
}

// handleGrantAnswer handles the outcome of a grant.
func (c grantTracker) handleGrantAnswer(now time.Time, s *scheddState, result *wire.GrantResult) {
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
		c.metrics.Grants.Inc(int(p.band), metrics.GrantRefused)
		c.forgetGrant(now, p)
		if r != nil {
			r.addRefusal(now, p.machine, m, result)
		}
		return
	}
	c.metrics.Grants.Inc(int(p.band), metrics.GrantClaimed)
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

// requestOf returns the request of a grant, nil if it is gone.
func (c grantTracker) requestOf(p *pendingGrant) *scheddRequest {
	if s := c.schedds[p.request.Schedd]; s != nil && s.sendQueue == p.sendQueue {
		return s.requests[p.request.ID]
	}
	return nil
}

// expireOverdue drops grants that have been pending, and schedds that have been away, for
// too long.
func (c grantTracker) expireOverdue(now time.Time) {
	if c.nextSweep.IsZero() || now.Before(c.nextSweep) {
		return
	}
	c.nextSweep = time.Time{}
	c.expireUnacked(now)
	for _, id := range slices.Sorted(maps.Keys(c.pendingByID)) {
		p := c.pendingByID[id]
		if p.stage == uncommitted {
			continue // if it is not committed soon, this negotiator no longer leads
		}
		if !now.Before(p.deadline) {
			c.expireGrant(now, p)
		} else {
			c.setNextSweep(p.deadline)
		}
	}
}

// expireGrant ends the wait for the outcome of a grant.
func (c grantTracker) expireGrant(now time.Time, p *pendingGrant) {
	if p.stage == granted && !p.overdue {
		c.metrics.Grants.Inc(int(p.band), metrics.GrantExpired)
	}
	c.dropGrant(p)
	c.changed = true
	if p.claimBy == 0 || p.overdue {
		c.forgetGrant(now, p)
		return
	}
	p.overdue, p.deadline = true, now.Add(absentUsageTTL)
	c.setNextSweep(p.deadline)
}

// dropGrant removes a grant that will not be answered from what its request was given.
func (c grantTracker) dropGrant(p *pendingGrant) {
	if r := c.requestOf(p); r != nil && p.stage != claimed {
		r.removeUnseen(p.id)
	}
}

// expireUnacked removes claimed grants that the schedd has not acknowledged in a while.
// It may have had no reason to send an update, if new tasks replaced what the grant took
// from its wants.
func (c grantTracker) expireUnacked(now time.Time) {
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

func (c grantTracker) setNextSweep(at time.Time) {
	if c.nextSweep.IsZero() || at.Before(c.nextSweep) {
		c.nextSweep = at
	}
}
