package match

import "github.com/roost-batch/roost"

// A soft limit (PBS: max_run_soft) may be exceeded while no other request of the band
// wants the resources. In each band, first the requests within their soft limits take
// turns, and then all. Claims beyond a soft limit may be preempted: a unit of the same
// band that stays within its own soft limits preempts them like claims of a lower band.
// The naive way, to let submitters beyond a limit come last, is not enough: what they got
// in a quiet hour they would hold for as long as their tasks run.
//
// The maker of the snapshot says which claims are beyond a limit: the youngest, as many
// as are too many.

// ClaimKey identifies a claim in the pool.
type ClaimKey struct {
	Machine string
	ID      uint64
}

// placeOverSoftLimits lets the requests of a band take turns that soft limits excluded so
// far.
func (p preemptionPlanner) placeOverSoftLimits(wants []*requestState) {
	if !p.softLimited {
		return
	}
	p.softLimited, p.overSoftLimits = false, true
	p.fairShares().placeBand(wants)
	p.overSoftLimits = false
}

// overSoftLimit reports whether a claim of the request's own band may be preempted
// because it is beyond a soft limit. A task that cannot be run again is never preempted
// for that.
func (p preemptionPlanner) overSoftLimit(m *Machine, c *MachineClaim) bool {
	return !p.overSoftLimits && !c.losesTask() && c.TaskStarted != 0 &&
		p.Preemption.OverSoftLimit[ClaimKey{m.Name, c.ID}] != ""
}

// batchMayPreemptBatch reports whether batch claims may be preempted by batch requests,
// on machine m or, if nil, on any machine.
func (p preemptionPlanner) batchMayPreemptBatch(m *Machine) bool {
	if p.Preemption.FairShare != nil || len(p.Preemption.OverSoftLimit) > 0 ||
		p.Preemption.Moves != nil && !p.Preemption.Moves.OnlyAdvise {
		return true
	}
	if m == nil {
		return len(p.rankPreempting) > 0
	}
	return m.rankPreempts
}

// highestVictimBand returns the highest band that a band may preempt.
func (p preemptionPlanner) highestVictimBand(band roost.PriorityBand) roost.PriorityBand {
	if band.IsProd() || p.batchMayPreemptBatch(nil) {
		return roost.BatchBand
	}
	return roost.FreeBand
}
