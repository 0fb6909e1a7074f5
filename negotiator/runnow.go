package negotiator

import (
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/match"
)

// denyRuns tells schedds which of their requests to run now found no machine in the cycle
// that placed them before all others: each is honoured once, and takes its turn from then
// on. What waits for claims that are leaving already, or for an answer to a grant, is not
// denied yet.
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
