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
	c.recordUsage(now, who, c.coresInUse(now, who))
	c.changed = true
}

func (c *leaderState) coresInUse(now time.Time, who fairshare.Submitter) coresInUse {
	return coresInUse{fairshare.CoresWorth(c.claimedBySubmitter(who), c.total), c.coresElsewhere(now, who)}
}

// elsewhereUsage is how many cores submitters of this pool use in other pools.
type elsewhereUsage struct {
	// as in the log or the pending entry
	charged map[fairshare.Submitter]float64
	// what the last leader had charged, until loadedUntil: schedds may not have reported
	// to this one, and no machine of this pool shows it
	loaded      map[fairshare.Submitter]float64
	loadedUntil time.Time
}

// loadedUsageTTL is how long a new leader goes on charging what its predecessor has
// charged. By then the schedds have reported.
const loadedUsageTTL = time.Minute

func newElsewhereUsage() elsewhereUsage {
	return elsewhereUsage{charged: map[fairshare.Submitter]float64{}, loaded: map[fairshare.Submitter]float64{}}
}

// load takes over an account of the log.
func (e *elsewhereUsage) load(now time.Time, a fairshare.SubmitterAccount) {
	if a.UseElsewhere > 0 {
		e.charged[a.Submitter], e.loaded[a.Submitter] = a.UseElsewhere, a.UseElsewhere
		e.loadedUntil = now.Add(loadedUsageTTL)
	}
}

// coresElsewhere returns what a submitter uses in other pools, as its schedds report it.
// It is counted as if it were in this pool, whose sizes are known.
func (c *leaderState) coresElsewhere(now time.Time, who fairshare.Submitter) float64 {
	if who.IsGuest() {
		return 0
	}
	var sum roost.Resources
	for _, s := range c.schedds {
		sum = sum.Add(s.elsewhere[who])
	}
	cores := fairshare.CoresWorth(sum, c.total)
	if now.Before(c.elsewhere.loadedUntil) {
		cores = max(cores, c.elsewhere.loaded[who])
	}
	return cores
}

// chargeAll updates every account, since the pool may have grown or shrunk. It drops
// schedds that have been away for too long.
func (c *leaderState) chargeAll(now time.Time) {
	c.usageCompared = c.synced
	all := map[fairshare.Submitter]bool{}
	for who := range c.chargedCores {
		all[who] = true
	}
	for who := range c.elsewhere.charged {
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
		for who := range s.elsewhere {
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
		c.recordUsage(now, who, c.coresInUse(now, who))
	}
}
