package negotiator

import (
	"maps"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/match"
)

// If administrators enable it, schedds place their batch requests themselves, on their
// own copies of the cell, and the cycle checks whether their self-placements conflict
// (HRM §4.3.2). A self-placement is a hint for one cycle, because the copy is older in
// the next.

// maxSelfPlacements bounds the self-placements of a request.
const maxSelfPlacements = maxUnanswered

// readSelfPlacements reads where a schedd proposes to place the tasks of a request.
func (r *scheddRequest) readSelfPlacements(m *wire.RequestUpdate) {
	r.selfPlacements = nil
	for _, one := range m.GetProposals()[:min(len(m.GetProposals()), maxSelfPlacements)] {
		r.selfPlacements = append(r.selfPlacements, match.SelfPlacement{Machine: one.GetNode(),
			Units: int(min(one.GetUnits(), roost.MaxTasks)), Waiting: one.GetWaiting()})
	}
}

// takeSelfPlacements moves the self-placements of a request into the present cycle.
func (c *leaderState) takeSelfPlacements(r *scheddRequest) {
	if r.SelfPlacements, r.selfPlacements = r.selfPlacements, nil; !c.policyMessages.message.GetDistributed() {
		r.SelfPlacements = nil
	}
}

// selfPlacementStats counts the outcomes of self-placements.
type selfPlacementStats struct {
	proposed, conflicted int    // number of tasks
	lastConflict         string // why one conflicted
}

// countConflicts counts the conflicts of a plan, and logs them at debug level.
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
