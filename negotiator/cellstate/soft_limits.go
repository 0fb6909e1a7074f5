package cellstate

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
)

// What runs beyond a soft limit may be preempted (match/soft_limits.go). The schedds
// report how much runs of each user, group and queue, and machine ads show whose claims
// there are. The excess is taken from the youngest claims. No ad shows the Unix group
// that a claim's owner had at submission, so such limits only decide who comes last.

// softExcess is by how much a soft limit is exceeded.
type softExcess struct {
	*requestRunLimit
	overBy int
}

// CountsEverything reports whether the running tasks of all queues together are limited.
func CountsEverything(p ledger.PoolLimits) bool {
	return p.Running.Any() || p.RunningAmounts.Any() || p.RunningSoft.Any() || p.RunningSoftAmounts.Any()
}

// heldClaim is a claim with its machine.
type heldClaim struct {
	machine string
	*match.MachineClaim
}

// claimsOverSoftLimits returns the claims beyond soft limits, with the text for their
// owners.
func (p *CellState) claimsOverSoftLimits(excesses []softExcess) map[match.ClaimKey]string {
	if len(excesses) == 0 {
		return nil
	}
	var claims []heldClaim
	for _, m := range p.Machines {
		for i := range m.Claims {
			if one := &m.Claims[i]; !one.Vacating {
				claims = append(claims, heldClaim{m.Name, one})
			}
		}
	}
	slices.SortFunc(claims, func(a, b heldClaim) int {
		return cmp.Or(cmp.Compare(b.TaskStarted, a.TaskStarted), cmp.Compare(a.machine, b.machine),
			cmp.Compare(b.ID, a.ID))
	})
	slices.SortFunc(excesses, func(a, b softExcess) int { return cmp.Compare(a.Limit, b.Limit) })
	all := map[match.ClaimKey]string{}
	for _, e := range excesses {
		there := 0
		for _, one := range claims {
			there += e.amountOfClaim(one)
		}
		e.overBy = min(e.overBy, there-e.max) // what the schedds count and no machine shows is in transit
		for _, one := range claims {
			if e.overBy <= 0 {
				break
			}
			if takes := e.amountOfClaim(one); takes > 0 && one.TaskStarted != 0 {
				all[match.ClaimKey{Machine: one.machine, ID: one.ID}] = e.excessText()
				e.overBy -= takes
			}
		}
	}
	return all
}

// amountOfClaim returns how much of the limit a claim takes; 0 if it is not counted
// there.
func (l *requestRunLimit) amountOfClaim(c heldClaim) int {
	party := ledger.LimitSubject{User: c.Submitter.Owner, Group: c.Submitter.Group}
	if l.SubjectKind == ledger.OfUnixGroup || l.queue != "" && c.Queue != l.queue || !l.LimitBound.Includes(party) {
		return 0
	}
	if l.amount == "" {
		return 1
	}
	return int(ledger.CountedAmount(c.Resources, l.amount))
}

// excessText returns the text for an owner beyond a soft limit.
func (e softExcess) excessText() string {
	at, what := "the pool", "jobs"
	if e.queue != "" {
		at = "queue " + e.queue
	}
	if e.amount != "" {
		what = ledger.ResourceName(e.amount)
	}
	return fmt.Sprintf("beyond the soft limit on running %s of %s in %s", what,
		ledger.LimitBound{SubjectKind: e.SubjectKind, Name: e.Name, NamesSubject: e.Name != ""}.SubjectText(), at)
}
