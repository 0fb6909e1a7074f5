package negotiator

import (
	"maps"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/match"
)

// Where administrators want it schedds place their batch requests themselves, on their own copies of the cell, and the cycle looks whether what they
// propose conflicts with anything (HRM §4.3.2). It is a hint for one cycle: the next one would look at a picture that is older still.

// maxProposals bounds how many of a request are looked at.
const maxProposals = maxUnanswered

// proposals takes in where a schedd would have the units of a request.
func (r *request) proposals(m *wire.RequestUpdate) {
	r.propose = nil
	for _, one := range m.GetProposals()[:min(len(m.GetProposals()), maxProposals)] {
		r.propose = append(r.propose, match.Proposal{Machine: one.GetNode(), Units: int(min(one.GetUnits(), roost.MaxTasks)), Waiting: one.GetWaiting()})
	}
}

// takeProposals puts what was proposed for a request into the cycle that begins, and forgets it.
func (c *cell) takeProposals(r *request) {
	if r.Proposed, r.propose = r.propose, nil; !c.announced.message.GetDistributed() {
		r.Proposed = nil
	}
}

// rivalry counts what has become of proposals.
type rivalry struct {
	proposed, conflicts int    // units
	last                string // why one conflicted
}

// settleProposals counts what conflicted in a plan, and says so to whoever looks closely.
func (c *cell) settleProposals(asked []*match.Request, plan match.Plan) {
	of := map[string]*rivalry{}
	for _, r := range asked {
		for _, one := range r.Proposed {
			if of[r.Key.Schedd] == nil {
				of[r.Key.Schedd] = &rivalry{}
			}
			of[r.Key.Schedd].proposed += one.Units
		}
		r.Proposed = nil
	}
	for _, one := range plan.Conflicts {
		o := of[one.Request.Key.Schedd]
		o.conflicts += one.Units
		o.last = one.Why + " (" + one.Machine + ")"
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		o := of[name]
		c.rivalry.proposed += o.proposed
		c.rivalry.conflicts += o.conflicts
		c.log.Debug("schedd proposed", "schedd", name, "units", o.proposed, "conflicts", o.conflicts, "last", o.last,
			"total", c.rivalry.proposed, "conflicted", c.rivalry.conflicts)
	}
}
