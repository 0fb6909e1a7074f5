package match

// The planners below are the parts of a cycle. Each has one concern and access to all
// fields of the cycle. A planner is one pointer, made where it is called, without state
// of its own.

// preemptionPlanner chooses the claims that are evicted for a request, and computes their
// cost.
type preemptionPlanner struct{ *negotiationCycle }

// backfillPlanner reserves room for requests that could not be placed, and lets others
// use that room until then.
type backfillPlanner struct{ *negotiationCycle }

// gangPlanner places all units of a gang at once, or none.
type gangPlanner struct{ *negotiationCycle }

// startExplainer says why a request waits, and when it may start.
type startExplainer struct{ *negotiationCycle }

// nodeQueuePlanner places units in the node queues of full resource units.
type nodeQueuePlanner struct{ *negotiationCycle }

// selfPlacementChecker checks what schedds placed on their own copies of the cell state.
type selfPlacementChecker struct{ *negotiationCycle }

// fairSharePlanner says which submitter and which group is next.
type fairSharePlanner struct{ *negotiationCycle }

func (p *negotiationCycle) preemption() preemptionPlanner { return preemptionPlanner{p} }

func (p *negotiationCycle) backfill() backfillPlanner { return backfillPlanner{p} }

func (p *negotiationCycle) gangs() gangPlanner { return gangPlanner{p} }

func (p *negotiationCycle) explainer() startExplainer { return startExplainer{p} }

func (p *negotiationCycle) nodeQueues() nodeQueuePlanner { return nodeQueuePlanner{p} }

func (p *negotiationCycle) selfPlacements() selfPlacementChecker { return selfPlacementChecker{p} }

func (p *negotiationCycle) fairShares() fairSharePlanner { return fairSharePlanner{p} }
