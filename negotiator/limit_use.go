package negotiator

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/match"
)

// Concurrency limits belong to no machine, so no machine refuses a claim because a limit
// is used up. The leader must prevent that. The claims in machine ads show what they
// take. A grant that is not in an ad yet counts until its outcome is certain.
//
// Naively a grant would expire after a while: if nothing is heard of it for ten seconds,
// it is dead. But a schedd that was stopped with a grant, by a signal or with its host,
// does not notice the ten seconds and continues where it was. And clocks of two machines
// cannot be compared. So a grant with limits expires by the clock of its machine, which
// alone judges it:
//
//   - A machine ad has the CLOCK_BOOTTIME at which it was made. A grant with limits has
//     the latest such time at which the claim may be requested (claimBy), and the claim
//     token covers it. The leader computes that time from the ad and its own clock. If it
//     is wrong, the claim is refused too early, or the limit becomes free too late;
//     nothing else follows.
//   - The machine refuses the claim when its clock is later.
//   - An ad made later than that shows the claim, or there will never be one. Only then
//     does the leader drop the grant.
//
// Usually the schedd reports the outcome sooner. It also reports to a new leader: its
// hello lists all such grants that it has, and those that are claims by now. It will
// never use those that it does not list, because it has finished its earlier sessions
// when it sends the hello. The leader waits for a machine without new ads as long as a
// schedd may be away from its tasks; nothing else depends on time.

// unknownClock is a sequence that no ad has: only the schedd can say which ad shows the
// claim.
const unknownClock = math.MaxUint64

// claimDeadline returns until when a machine accepts a grant with these limits, by the
// machine's clock. It is 0 without limits, and for a machine whose clock is unknown.
func claimDeadline(now time.Time, m *inventoryMachine, limits []roost.LimitRequest) time.Duration {
	if len(limits) == 0 || m.clock == 0 {
		return 0
	}
	return m.clock + max(now.Sub(m.heardAt), 0) + grantTTL
}

// claimDeadlinePassed reports whether a machine's ad was made after the deadline of a
// grant.
func claimDeadlinePassed(m *inventoryMachine, p *pendingGrant) bool {
	return p.stage != uncommitted && p.claimBy != 0 &&
		(m.Started > p.started || m.Started == p.started && m.clock > p.claimBy)
}

// syncLimitedGrants compares the pending grants with limits with those that a schedd
// lists when its session begins.
func (c grantTracker) syncLimitedGrants(now time.Time, s *scheddState, hello *wire.ScheddHello, mail *sendQueue) {
	if !hello.GetLists() {
		return
	}
	has := map[uint64]*wire.HeldGrant{}
	for _, g := range hello.GetGrants() {
		has[g.GetGrant()] = g
	}
	for _, id := range slices.Sorted(maps.Keys(c.pendingByID)) {
		p := c.pendingByID[id]
		if p.request.Schedd != s.name || len(p.limitUse) == 0 || p.stage == uncommitted {
			continue
		}
		switch g := has[id]; {
		case g == nil || g.GetEpoch() != p.epoch:
			c.forgetGrant(now, p)
		case !g.GetClaimed():
			if p.stage == claimed {
				s.unansweredGrants++
			}
			p.stage, p.sendQueue = granted, mail
		case g.GetAdSequence() > 0:
			if p.stage != claimed {
				s.unansweredGrants--
			}
			p.stage, p.sequence = claimed, g.GetAdSequence()
			if m := c.machines[p.machine]; m != nil && adShowsClaim(m, p) {
				c.forgetGrant(now, p)
			}
		}
	}
	c.changed = true
}

// limitUse is the use of each concurrency limit.
type limitUse map[string]int

// addMachine adds the limits of a machine's claims, or removes them if sign is -1. An
// invalid list counts as empty: the startd got it from a valid request.
func (n limitUse) addMachine(m *inventoryMachine, sign int) {
	for _, claims := range [...][]match.MachineClaim{m.Claims, m.Preemptors} {
		for i := range claims {
			n.addClaim(claims[i].Limits, sign)
		}
	}
}

func (n limitUse) addClaim(text string, sign int) {
	if text == "" {
		return
	}
	all, err := roost.ParseLimitRequests(text)
	if err != nil {
		return
	}
	for _, l := range all {
		if n[l.Name] += sign * l.Count; n[l.Name] == 0 {
			delete(n, l.Name)
		}
	}
}

// grantedLimitUse returns the use of each limit by grants that are not in machine ads
// yet.
func (c grantTracker) grantedLimitUse() limitUse {
	all := limitUse{}
	for _, p := range c.pendingByID {
		for _, l := range p.limitUse {
			all[l.Name] += l.Count
		}
	}
	return all
}
