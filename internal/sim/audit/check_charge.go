package audit

import (
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
)

// chargeWindow is what is seen of the charge of a submitter within some time. A charge
// follows the claims with a delay, so that at any instant it may differ from them.
type chargeWindow struct {
	began                 time.Duration
	leastRate, mostRate   float64 // cores that are charged
	leastWorth, mostWorth float64 // what the claims are worth in cores
}

// chargeDelay is how long after the last fault charges are compared. A claim that its
// schedd has forgotten lives until the end of its lease, and is not charged.
const chargeDelay = 2 * time.Minute

// chargeTolerance is by how many cores a charge may differ from what claims are worth.
const chargeTolerance = 1e-3

// checkCharges checks P6 when no fault is in the way. What a submitter is charged for is
// what the machines have leased to it. A claim inside an alloc is a part of that, and is
// not charged beside it.
func (a *Auditor) checkCharges(at time.Duration) {
	if at < a.faultsEnded+chargeDelay {
		return
	}
	worth := a.worthBySubmitter()
	all := maps.Clone(worth)
	for who := range a.accounts {
		all[who] = 0
	}
	for who := range a.charges { // that it has nothing now is seen, too
		all[who] = 0
	}
	for _, who := range slices.Sorted(maps.Keys(all)) {
		rate, claims := 0.0, worth[who]
		if acc := a.accounts[who]; acc != nil {
			rate = acc.cores
		}
		w := a.charges[who]
		if w == nil || w.began < a.faultsEnded {
			w = &chargeWindow{at, rate, rate, claims, claims}
			a.charges[who] = w
		}
		w.leastRate, w.mostRate = min(w.leastRate, rate), max(w.mostRate, rate)
		w.leastWorth, w.mostWorth = min(w.leastWorth, claims), max(w.mostWorth, claims)
		if at-w.began < a.rules.StartWait {
			continue
		}
		if w.leastRate <= w.mostWorth+chargeTolerance && w.leastWorth <= w.mostRate+chargeTolerance {
			*w = chargeWindow{at, rate, rate, claims, claims}
			continue
		}
		w.began = noDeadline // report it once
		a.now = max(a.now, at)
		a.addViolation(6, chargeHistory(who), "%s is charged for %g to %g cores for %v, and has claims that are worth "+
			"%g to %g", who, w.leastRate, w.mostRate, a.rules.StartWait, w.leastWorth, w.mostWorth)
	}
}

// worthBySubmitter returns what the claims of each submitter are worth in cores. That is
// the larger of their cores and their part of the memory of all machines.
func (a *Auditor) worthBySubmitter() map[string]float64 {
	var total roost.Resources
	sums := map[string]roost.Resources{}
	for _, m := range a.machines {
		total = total.Add(m.mostOffered)
		for _, l := range m.leases {
			if l.inside == 0 && l.submitter != "" {
				sums[l.submitter] = sums[l.submitter].Add(l.resources)
			}
		}
	}
	worth := make(map[string]float64, len(sums))
	for who, has := range sums {
		worth[who] = has.CPU.Cores()
		if total.Memory > 0 {
			worth[who] = max(worth[who], float64(has.Memory)*total.CPU.Cores()/float64(total.Memory))
		}
	}
	return worth
}

// chargeHistory selects the events about the claims of a submitter and their charge.
func chargeHistory(who string) func(*Event) bool {
	return func(s *Event) bool { return s.Submitter == who && s.Type != UsageReported }
}
