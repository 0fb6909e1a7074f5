package negotiator

import (
	"maps"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/match"
)

// Where administrators want it schedds place their batch requests themselves, on their
// own copies of the cell, and the cycle looks whether what they propose conflicts with
// anything (HRM §4.3.2). It is a hint for one cycle: the next one would look at a picture
// that is older still.

// maxSelfPlacements bounds how many of a request are looked at.
const maxSelfPlacements = maxUnanswered

// readSelfPlacements takes in where a schedd would have the units of a request.
func (r *scheddRequest) readSelfPlacements(m *wire.RequestUpdate) {
	r.selfPlacements = nil
	for _, one := range m.GetProposals()[:min(len(m.GetProposals()), maxSelfPlacements)] {
		r.selfPlacements = append(r.selfPlacements, match.SelfPlacement{Machine: one.GetNode(),
			Units: int(min(one.GetUnits(), roost.MaxTasks)), Waiting: one.GetWaiting()})
	}
}

// takeSelfPlacements puts what was proposed for a request into the cycle that begins, and
// forgets it.
func (c *leaderState) takeSelfPlacements(r *scheddRequest) {
	if r.SelfPlacements, r.selfPlacements = r.selfPlacements, nil; !c.policyMessages.message.GetDistributed() {
		r.SelfPlacements = nil
	}
}

// selfPlacementStats counts what has become of proposals.
type selfPlacementStats struct {
	proposed, conflicted int    // units
	lastConflict         string // why one conflicted
}

// countConflicts counts what conflicted in a plan, and says so to whoever looks closely.
func (c *leaderState) countConflicts(asked []*match.Request, plan match.Plan) {
	of := map[string]*selfPlacementStats{}
	for _, r := range asked {
		for _, one := range r.SelfPlacements {
			if of[r.Key.Schedd] == nil {
				of[r.Key.Schedd] = &selfPlacementStats{}
			}
			of[r.Key.Schedd].proposed += one.Units
		}
		r.SelfPlacements = nil
	}
	for _, one := range plan.Conflicts {
		o := of[one.Request.Key.Schedd]
		o.conflicted += one.Units
		o.lastConflict = one.Why + " (" + one.Machine + ")"
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		o := of[name]
		c.selfPlacementStats.proposed += o.proposed
		c.selfPlacementStats.conflicted += o.conflicted
		c.log.Debug("schedd proposed", "schedd", name, "units", o.proposed, "conflicts", o.conflicted, "last",
			o.lastConflict,
			"total", c.selfPlacementStats.proposed, "conflicted", c.selfPlacementStats.conflicted)
	}
}
