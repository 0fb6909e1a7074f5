package negotiator

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// claimedBySubmitter is what a submitter's claims hold, of all schedds: as these say, and
// of those that have not said it to this leader, as the machines do.
func (c *leaderState) claimedBySubmitter(who fairshare.Submitter) roost.Resources {
	sum := c.unheardUsage[who]
	for _, s := range c.schedds {
		sum = sum.Add(s.usage[who])
	}
	return sum
}

// grantedToSubmitter is what is on its way to each submitter: it counts for fair share as
// if it was held already.
func (c *leaderState) grantedToSubmitter() map[fairshare.Submitter]roost.Resources {
	sums := map[fairshare.Submitter]roost.Resources{}
	for _, p := range c.pendingByID {
		if p.stage != claimed {
			sums[p.submitter] = sums[p.submitter].Add(p.resources.Resources)
		}
	}
	return sums
}

// chargeSubmitter brings a submitter's account in line with what it holds. Grants are not
// charged, claims are.
func (c *leaderState) chargeSubmitter(now time.Time, who fairshare.Submitter) {
	c.recordUsage(now, who, fairshare.CoresWorth(c.claimedBySubmitter(who), c.total))
	c.changed = true
}

// chargeAll brings every account in line, as the pool may have grown or shrunk, and
// forgets schedds that have been away for too long.
func (c *leaderState) chargeAll(now time.Time) {
	c.usageCompared = c.synced
	all := map[fairshare.Submitter]bool{}
	for who := range c.chargedCores {
		all[who] = true
	}
	for name, s := range c.schedds {
		if s.sendQueue == nil && now.Sub(s.awaySince) >= absentUsageTTL {
			delete(c.schedds, name)
			continue
		}
		for who := range s.usage {
			all[who] = true
		}
	}
	c.unheardUsage = map[fairshare.Submitter]roost.Resources{}
	for name, held := range c.usageBySchedd {
		if c.schedds[name] == nil {
			for who, resources := range held {
				c.unheardUsage[who], all[who] = c.unheardUsage[who].Add(resources), true
			}
		}
	}
	for who := range all {
		c.recordUsage(now, who, fairshare.CoresWorth(c.claimedBySubmitter(who), c.total))
	}
}
