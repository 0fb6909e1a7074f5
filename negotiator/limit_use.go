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

// Licences (concurrency limits) are of no machine, so no machine refuses a claim because
// somebody else has the last one: that they are not used twice is the leader's to see.
// What machines' claims take their ads tell. What was granted and does not show there yet
// counts until it is certain what has become of it.
//
// Naively that would be so after a while: a grant that nobody has acted upon for ten
// seconds is dead. But a schedd that was stopped with a grant in hand, by a signal or
// with its whole machine, knows nothing of the ten seconds; it goes on in the middle of
// what it was doing. And clocks of two machines cannot be compared. So a grant with
// licences ends by the clock of the machine that it is for, which alone judges it:
//
//   - A machine's ad says what its CLOCK_BOOTTIME showed when the ad was made. A grant
//     with licences says what that clock may show at most when the claim
//     is asked for (claimBy); the capability covers it. How long that is the leader reckons from the ad and from its own clock, and if it is wrong the
//     claim is refused too early, or the licence is free too late; nothing else follows.
//   - The machine refuses the claim when its clock shows more.
//   - An ad in which that clock shows more tells of the claim, or there will never be
//     one. Then, and not before, the leader forgets the grant.
//
// Mostly the schedd says sooner what became of it. It says so to a new leader, too: its
// hello names all such grants that it has in hand, and those that are claims by now. What
// it does not name it will never act upon, for it is done with its earlier conversations
// when it says hello. A machine of which no ad comes any more is waited for as long as a
// schedd may be away from its tasks; nothing else is measured in time.

// unknownClock is the sequence of an ad of which only the schedd can say which one it is.
const unknownClock = math.MaxUint64

// claimDeadline is until when a machine takes a grant with these licences, by its own
// clock; 0 for one without, and for a machine that does not say what time it is there.
func claimDeadline(now time.Time, m *inventoryMachine, limits []roost.LimitRequest) time.Duration {
	if len(limits) == 0 || m.clock == 0 {
		return 0
	}
	return m.clock + max(now.Sub(m.heardAt), 0) + grantTTL
}

// claimDeadlinePassed reports whether a machine's ad was made when nobody could claim a
// grant any more.
func claimDeadlinePassed(m *inventoryMachine, p *pendingGrant) bool {
	return p.stage != uncommitted && p.claimBy != 0 &&
		(m.Started > p.started || m.Started == p.started && m.clock > p.claimBy)
}

// syncLimitedGrants takes in what a schedd that begins a conversation says of the grants
// with licences that it has.
func (c *leaderState) syncLimitedGrants(now time.Time, s *scheddState, hello *wire.ScheddHello, mail *sendQueue) {
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

// limitUse is how many of each licence are in use.
type limitUse map[string]int

// addMachine notes what a machine's claims take, or with sign -1 that they do no more. A
// list that makes no sense takes nothing: the startd had it from a request that made
// sense.
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

// grantedLimitUse is how much of each licence grants take that do not show in machines'
// ads yet.
func (c *leaderState) grantedLimitUse() limitUse {
	all := limitUse{}
	for _, p := range c.pendingByID {
		for _, l := range p.limitUse {
			all[l.Name] += l.Count
		}
	}
	return all
}
