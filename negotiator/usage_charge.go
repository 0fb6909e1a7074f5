package negotiator

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// claimedBySubmitter returns what a submitter's claims hold over all schedds. It uses the
// reports of the schedds, and machine ads for schedds that have not reported to this
// leader.
func (c *leaderState) claimedBySubmitter(who fairshare.Submitter) roost.Resources {
	if who.IsGuest() { // a guest's word on what it has counts for nothing
		return c.guestUsage.held[who]
	}
	sum := c.unheardUsage[who]
	for _, s := range c.schedds {
		sum = sum.Add(s.usage[who])
	}
	return sum
}

// grantedToSubmitter returns what is granted to each submitter and not yet claimed. It
// counts for fair share as if it were held.
func (c *leaderState) grantedToSubmitter() map[fairshare.Submitter]roost.Resources {
	sums := map[fairshare.Submitter]roost.Resources{}
	for _, p := range c.pendingByID {
		if p.stage != claimed {
			sums[p.submitter] = sums[p.submitter].Add(p.resources.Resources)
		}
	}
	return sums
}

// chargeSubmitter updates a submitter's account. Claims are charged, grants are not.
func (c *leaderState) chargeSubmitter(now time.Time, who fairshare.Submitter) {
	c.recordUsage(now, who, fairshare.CoresWorth(c.claimedBySubmitter(who), c.total))
	c.changed = true
}

// chargeAll updates every account, since the pool may have grown or shrunk. It drops
// schedds that have been away for too long.
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
	for who := range c.guestUsage.held {
		all[who] = true
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
