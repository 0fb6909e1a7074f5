package negotiator

import (
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/match"
)

// denyRuns tells schedds which of their requests to run now found no machine. The cycle
// had placed them before all others. Such a request is honoured once, and then waits its
// turn. It is not denied yet while it waits for vacating claims or for the answer to a
// grant.
func (c *leaderState) denyRuns(unplaced []match.UnplacedRequest, requests map[*match.Request]*scheddRequest) {
	for _, u := range unplaced {
		r := requests[u.Request]
		if !r.Now || r.waitRefused || u.Awaits || len(r.unseenGrants) > 0 {
			continue
		}
		if u.Explanation == nil {
			r.explanationWanted, c.changed = true, true // the next cycle says what is missing
			continue
		}
		c.denyRun(r, noRoomText(u.Explanation))
	}
}

func (c *leaderState) denyRun(r *scheddRequest, why string) {
	r.waitRefused = true
	c.schedds[r.Key.Schedd].sendQueue.putMessage(
		&wire.ToSchedd{Of: &wire.ToSchedd_Unplaced{Unplaced: &wire.Unplaced{Request: r.Key.ID, Refused: why}}},
	)
}
