package negotiator

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/match"
)

// The grants of a gang are added to the pending entry together or not at all, so they are
// committed and sent together. The schedd checks that all their claims succeed: if one is
// refused, it returns the others.

// readRuntimes reads the run times and the gang size of a request.
func (r *scheddRequest) readRuntimes(m *wire.RequestUpdate) {
	length := func(seconds int64) time.Duration {
		return time.Duration(min(max(seconds, 0), maxRuntime)) * time.Second
	}
	r.Gang = int(min(m.GetGang(), roost.MaxTasks))
	r.Walltime, r.PredictedRuntime = length(m.GetWalltimeS()), length(m.GetPredictedS())
	r.Reservation, r.GangRequest = m.GetReservation(), m.GetLead()
}

// maxRuntime bounds the run time of a task, in seconds.
const maxRuntime = 100 * 366 * 86400

// walltimeEnd returns when a task that starts now ends by its walltime, in unix seconds;
// 0 for never.
func (r *scheddRequest) walltimeEnd(now time.Time) int64 {
	if r.Walltime <= 0 {
		return 0
	}
	return now.Add(r.Walltime).Unix()
}

// addGrants adds the grants of a plan to the pending entry, unless their schedds have too
// many unanswered ones.
func (c *leaderState) addGrants(now time.Time, grants []match.Grant, requests map[*match.Request]*scheddRequest) {
	for len(grants) > 0 {
		n, units := gangPrefix(grants)
		s := c.schedds[grants[0].Request.Key.Schedd]
		whole := grants[0].Gang != 0
		if room := maxUnanswered - s.unansweredGrants; !whole {
			// the rest when it has answered
			grants[0].Units = c.blackHoleDrains().limitOnTrial(grants[0].Machine.Name, min(units, room))
		} else if units > room && s.unansweredGrants > 0 {
			grants = grants[n:]
			continue // when it has answered
		}
		first := c.lastID + 1
		for _, g := range grants[:n] {
			c.recordGrant(now, g)
			if g.Units > 0 {
				c.countVictims(now, &g)
			}
			c.recentStarts.addStart(now, &g)
			for range g.Units {
				p := c.addGrant(now, requests[g.Request], g)
				if whole {
					p.message.Gang, p.message.GangSize = first, uint32(units)
				}
			}
		}
		grants = grants[n:]
	}
}

// gangPrefix returns how many grants from the first one on belong together, and how many
// tasks they have.
func gangPrefix(grants []match.Grant) (n, units int) {
	for n < len(grants) && (n == 0 || grants[0].Gang != 0 && grants[n].Gang == grants[0].Gang) {
		units += grants[n].Units
		n++
	}
	return n, units
}
