package cellstate

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
)

// What runs beyond a soft limit may be displaced (match/beyond.go). The schedds say how
// much runs of each user, group and queue, and the machines' ads whose claims there are:
// of those as many as are too many are beyond, the youngest first. Of which Unix group a
// claim's owner was at submit no ad tells; so such limits only say who comes last.

// softExcess is by how much a soft limit is gone beyond.
type softExcess struct {
	*requestRunLimit
	overBy int
}

// CountsEverything reports whether only so much runs at once of all queues.
func CountsEverything(p ledger.PoolLimits) bool {
	return p.Running.Any() || p.RunningAmounts.Any() || p.RunningSoft.Any() || p.RunningSoftAmounts.Any()
}

// held is a claim, and on which machine.
type heldClaim struct {
	machine string
	*match.MachineClaim
}

// claimsOverSoftLimits are the claims that are beyond soft limits, and what is said to
// those who lose them.
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
		e.overBy = min(e.overBy, there-e.max) // what the schedds count and no machine shows is on its way
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

// amountOfClaim is how much of the limit a claim takes; 0 if it is not counted there.
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

// excessText says to somebody which soft limit he is beyond.
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
