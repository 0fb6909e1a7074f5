package negotiator

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/blackhole"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
)

// takeoverGrantTTL is how long a new leader counts the last grants of its predecessor. A
// claim made of such a grant is in the machine's ad by then, and a later one is checked
// by the machine.
const takeoverGrantTTL = 250 * time.Millisecond

// loadFromLedger takes over the state in the log. It consists of the usage of submitters,
// and the grants that machine ads may not show yet.
func (c *leaderState) loadFromLedger(now time.Time) {
	c.ledgerStore.view(func(l *ledger.Ledger) {
		c.lastID = l.LastGrant()
		for _, a := range l.Accountant().Accounts() {
			if a.Use > 0 {
				c.chargedCores[a.Submitter] = a.Use
			}
			c.elsewhere.load(now, a)
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

// adoptGrant counts a grant of an earlier leader as pending. The machine's next ad shows
// its outcome. A grant with limits is reported by its schedd when it connects
// (syncLimitedGrants); until then it counts for as long as it may be used.
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
		p.deadline = now.Add(ledger.PendingGrantTTL) // its start is by another leader's clock
	}
	if m := c.machines[g.Machine]; m != nil {
		if m.Started > g.Started {
			c.grants().resolveLimitedGrant(now, p)
			return // it was granted to an earlier start of the machine
		}
		if claimDeadlinePassed(m, p) {
			c.grants().resolveLimitedGrant(now, p)
			return
		}
		p.sequence = m.Sequence + 1
	}
	if len(p.limitUse) > 0 {
		p.sequence = unknownClock
	}
	c.pendingByID[id] = p
	c.pendingByMachine[p.machine] = append(c.pendingByMachine[p.machine], p)
	c.grants().setNextSweep(p.deadline)
}
