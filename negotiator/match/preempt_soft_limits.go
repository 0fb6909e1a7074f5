package match

import "github.com/roost-batch/roost"

// A soft limit (PBS: max_run_soft) may be gone beyond, by what nobody else in its band
// wants: in a band those first take turns that stay within theirs, and then all. What
// runs beyond one may have to go again: a unit of the same band that stays within all of
// its own displaces it, as it would a lower band. Naively a submitter beyond a limit
// would just come last; but then what he has got in a quiet hour he keeps as long as his
// tasks run, whoever comes.
//
// Whoever makes the snapshot says which claims are beyond: the youngest ones, as many as
// are too many.

// ClaimKey names a claim in the pool.
type ClaimKey struct {
	Machine string
	ID      uint64
}

// placeOverSoftLimits lets those of a band take turns that soft limits have kept back.
func (p preemptionPlanner) placeOverSoftLimits(wants []*requestState) {
	if !p.softLimited {
		return
	}
	p.softLimited, p.overSoftLimits = false, true
	p.fairShares().placeBand(wants)
	p.overSoftLimits = false
}

// overSoftLimit reports whether a claim of the want's own band has to make room as it is
// beyond a soft limit. What is not run again nobody loses for that.
func (p preemptionPlanner) overSoftLimit(m *Machine, c *MachineClaim) bool {
	return !p.overSoftLimits && !c.losesTask() && c.TaskStarted != 0 &&
		p.Preemption.OverSoftLimit[ClaimKey{m.Name, c.ID}] != ""
}

// batchMayPreemptBatch reports whether claims of batch may have to make room for others
// of batch, on a machine or on any (nil).
func (p preemptionPlanner) batchMayPreemptBatch(m *Machine) bool {
	if p.Preemption.FairShare != nil || len(p.Preemption.OverSoftLimit) > 0 {
		return true
	}
	if m == nil {
		return len(p.rankPreempting) > 0
	}
	return m.rankPreempts
}

// highestVictimBand is the highest band that one may displace.
func (p preemptionPlanner) highestVictimBand(band roost.PriorityBand) roost.PriorityBand {
	if band.IsProd() || p.batchMayPreemptBatch(nil) {
		return roost.BatchBand
	}
	return roost.FreeBand
}
