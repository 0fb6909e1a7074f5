package negotiator

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/blackhole"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
)

// takeoverGrantTTL is for how long a new leader keeps what its predecessor granted last:
// a claim that a schedd made of it stands in the machine's ad by then, and one that it
// makes later the machine judges by itself.
const takeoverGrantTTL = 250 * time.Millisecond

// loadFromLedger takes over what the log says of the time before: what submitters use,
// and the grants that their machines' ads may not show yet.
func (c *leaderState) loadFromLedger(now time.Time) {
	c.ledgerStore.view(func(l *ledger.Ledger) {
		c.lastID = l.LastGrant()
		for _, a := range l.Accountant().Accounts() {
			if a.Use > 0 {
				c.chargedCores[a.Submitter] = a.Use
			}
		}
		c.recentEvictions.loadFromLedger(now, l.Evictions())
		self := map[string]bool{}
		for _, o := range l.Objects(ledger.KindDrain) {
			self[o.Name] = o.SetBy == ""
		}
		for _, d := range l.Drains() {
			if self[d.Node] && now.Before(d.Until) {
				c.automaticDrains[d.Node] = time.Time{}
				c.blackHoles.AddKnownDrain(blackhole.AutomaticDrain{Machine: d.Node, Until: d.Until, Reason: d.Reason})
			}
		}
		for f := range l.PendingGrants() {
			for i := range f.Grant.Units {
				c.adoptGrant(now, f, f.Grant.ID+uint64(i))
			}
		}
	})
}

// adoptGrant counts a grant of an earlier leader as pending. What became of it the
// machine's next ad shows. One with licences its schedd tells of when it comes
// (syncLimitedGrants), and until then it is kept for as long as it may be acted upon.
func (c *leaderState) adoptGrant(now time.Time, f ledger.PendingGrant, id uint64) {
	g := f.Grant
	p := &pendingGrant{
		id: id, epoch: f.Epoch, request: match.RequestKey{Schedd: g.Schedd, ID: g.Request}, submitter: g.Submitter,
		machine: g.Machine, stage: claimed,
		resources: match.PendingGrant{
			Request: match.RequestKey{Schedd: g.Schedd, ID: g.Request}, Resources: g.Resources,
			MayReclaim: !g.Band.IsProd(), Waiting: g.Waiting, Unit: g.Unit, Victims: g.Victims,
		},
		deadline: now.Add(takeoverGrantTTL), started: g.Started, claimBy: time.Duration(g.ClaimBy),
	}
	if g.Stream {
		p.resources.Class = gpu.StreamClass
	}
	for _, l := range g.Limits {
		p.limitUse = append(p.limitUse, roost.LimitRequest{Name: l.Limit, Count: int(l.Count)})
		p.deadline = now.Add(ledger.PendingGrantTTL) // since when is told by another's clock
	}
	if m := c.machines[g.Machine]; m != nil {
		if m.Started > g.Started {
			c.resolveLimitedGrant(now, p)
			return // it was granted to a life of the machine that is over
		}
		if claimDeadlinePassed(m, p) {
			c.resolveLimitedGrant(now, p)
			return
		}
		p.sequence = m.Sequence + 1
	}
	if len(p.limitUse) > 0 {
		p.sequence = unknownClock
	}
	c.pendingByID[id] = p
	c.pendingByMachine[p.machine] = append(c.pendingByMachine[p.machine], p)
	c.setNextSweep(p.deadline)
}
