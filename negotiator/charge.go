package negotiator

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/share"
)

// used is what a submitter's claims hold, of all schedds: as these say, and of those that have not said it to this leader, as the machines do.
func (c *cell) used(who share.Submitter) roost.Resources {
	sum := c.absent[who]
	for _, s := range c.schedds {
		sum = sum.Add(s.held[who])
	}
	return sum
}

// granted is what is on its way to each submitter: it counts for fair share as if it was held already.
func (c *cell) granted() map[share.Submitter]roost.Resources {
	sums := map[share.Submitter]roost.Resources{}
	for _, p := range c.pending {
		if p.stage != claimed {
			sums[p.submitter] = sums[p.submitter].Add(p.promise.Resources)
		}
	}
	return sums
}

// chargeOne brings a submitter's account in line with what it holds. Grants are not charged, claims are.
func (c *cell) chargeOne(now time.Time, who share.Submitter) {
	c.hold(now, who, share.Weight(c.used(who), c.total))
	c.changed = true
}

// charge brings every account in line, as the pool may have grown or shrunk, and forgets schedds that have been away for too long.
func (c *cell) charge(now time.Time) {
	c.audited = c.synced
	all := map[share.Submitter]bool{}
	for who := range c.charged {
		all[who] = true
	}
	for name, s := range c.schedds {
		if s.mail == nil && now.Sub(s.away) >= heldFor {
			delete(c.schedds, name)
			continue
		}
		for who := range s.held {
			all[who] = true
		}
	}
	c.absent = map[share.Submitter]roost.Resources{}
	for name, held := range c.claims {
		if c.schedds[name] == nil {
			for who, resources := range held {
				c.absent[who], all[who] = c.absent[who].Add(resources), true
			}
		}
	}
	for who := range all {
		c.hold(now, who, share.Weight(c.used(who), c.total))
	}
}
